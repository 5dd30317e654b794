"""What a property costs in a bucket, a property-list dictionary in a binary attribute, against an
attribute of its own: beside the figures that were published for Core Data.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

from . import ground, tool

MODELS = os.path.join(ground.ROOT, "Pipelines", "bucket", "Things.xcdatamodeld")
MODEL = os.path.join(ground.ROOT, "Pipelines", "bucket", "Things.xcdatamodeld", "Things 2.xcdatamodel")

# Seconds for 1 000 items in Core Data: natively, through the bucket.
PUBLISHED = {"add": (0.00485, 0.02022), "update": (0.00513, 0.03116), "read": (0.00657, 0.01254),
             "read, decoded cache": (0.00657, 0.00972), "read again from it": (0.00657, 0.00840)}
# What is divided by what.
MEASURED = {"add": ("add native", "add bucket"), "update": ("update native", "update bucket"),
            "read": ("read native", "read bucket"),
            "read, decoded cache": ("read native", "cached first"),
            "read again from it": ("read native", "cached then")}


def through_policies(options):
    """{what: [seconds of each round]} of an entity migration policy that does it all."""
    with ground.workspace("bucket") as folder:
        store, mapping = os.path.join(folder, "Things.sqlite"), os.path.join(folder, "cost.yaml")
        made = tool.run([ground.godwit(), "fixture", os.path.join(MODELS, "Things.xcdatamodel"), "-o", store,
                         "--rows", str(options.items), "--json"])
        if made.exit:
            sys.exit(f"no store could be made: {made.why()}")
        with open(mapping, "w") as file:
            file.write("mapping-model: 1\nentity-mappings:\n"
                       "  - { source: Thing, destination: Thing, policy: BucketCostPolicy }\n")
        run = tool.run([ground.trial(), "migrate", store, "--models", MODELS, "--mapping", mapping, "--output",
                        os.path.join(folder, "out.sqlite"), "--json"],
                       env=tool.environment(BUCKET_ROUNDS=options.rounds, BUCKET_OTHER_KEYS=options.other_keys))
        said = [line for line in run.stderr.splitlines() if line.startswith("bucket-cost ")]
        if run.exit or not said:
            sys.exit(f"the policy did not run: {run.why()}")
        return json.loads(said[-1][len("bucket-cost "):])


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench --bucket", description=__doc__)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--other-keys", type=int, default=0)
    parser.add_argument("--policy", action="store_true",
                        help="through the policy API, by a policy that uses Foundation's property lists")
    options = parser.parse_args()
    report(options, through_policies(options) if options.policy else through_the_store(options))


def through_the_store(options):
    command = [ground.benchmarks(), "bucket", "--model", MODEL, "--items", str(options.items),
               "--rounds", str(options.rounds), "--other-keys", str(options.other_keys)]
    done = subprocess.run(command, stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(done.returncode)
    return json.loads(done.stdout)


def report(options, seconds):
    rows = []
    for name, (native, bucket) in MEASURED.items():
        # Of one round each: a machine whose speed drifts drifts for both.
        ratios = [b / n for n, b in zip(seconds[native], seconds[bucket])]
        was = PUBLISHED[name]
        rows.append((name, f"{statistics.median(seconds[native]) * 1e3:.2f}",
                     f"{statistics.median(seconds[bucket]) * 1e3:.2f}",
                     f"{statistics.median(ratios):.1f}",
                     f"{was[0] * 1e3:.2f}", f"{was[1] * 1e3:.2f}", f"{was[1] / was[0]:.1f}"))
    print(f"{options.items} things, {options.other_keys + 1} keys in each bucket, medians of "
          f"{options.rounds} rounds in ms; beside them what was published for Core Data, 1000 things")
    print(ground.table(rows, ("", "native", "bucket", "ratio", "native", "bucket", "ratio")))


if __name__ == "__main__":
    main()
