"""What a property costs in a bucket, a property-list dictionary in a binary attribute, against an
attribute of its own: beside the figures that were published for Core Data.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

from . import ground

MODEL = os.path.join(ground.ROOT, "Pipelines", "bucket", "Things.xcdatamodeld", "Things 2.xcdatamodel")

# Seconds for 1 000 items in Core Data: natively, through the bucket.
PUBLISHED = {"add": (0.00485, 0.02022), "update": (0.00513, 0.03116), "read": (0.00657, 0.01254),
             "read, decoded cache": (0.00657, 0.00972), "read again from it": (0.00657, 0.00840)}
# What is divided by what.
MEASURED = {"add": ("add native", "add bucket"), "update": ("update native", "update bucket"),
            "read": ("read native", "read bucket"),
            "read, decoded cache": ("read native", "cached first"),
            "read again from it": ("read native", "cached then")}


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench --bucket", description=__doc__)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--other-keys", type=int, default=0)
    options = parser.parse_args()
    command = [ground.benchmarks(), "bucket", "--model", MODEL, "--items", str(options.items),
               "--rounds", str(options.rounds), "--other-keys", str(options.other_keys)]
    done = subprocess.run(command, stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(done.returncode)
    seconds = json.loads(done.stdout)
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
