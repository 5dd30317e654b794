"""Large fleets on a Slurm cluster, on paper: what bundles of which size cost, from what bundles cost here."""
import glob
import json
import os
import subprocess
import time

from . import ground

# Measured: tasks that Slurm 22.05 starts in a second, however many nodes; and one sbatch.
STARTS_PER_SECOND = 95
SBATCH_SECONDS = 0.016
ARRAY = 1000
BUNDLE_SECONDS = 120        # what a bundle should take
FLEETS = (40_000, 10_000_000)
CPUS = (48, 1000)
PIPELINE = """\
name: plan
stores: {{ roots: [stores] }}
models: {models}
engine: {{ array: {{ bundle: {{ stores: {stores} }} }} }}
"""


def main(given):
    facts = measured(given)
    print(f"measured here: {facts['fixed']:.2f} s a task and {facts['store'] * 1000:.1f} ms a store of "
          f"{facts['bytes'] // 1000} KB on one CPU, two stores at a time")
    print(f"a store has {facts['manifest']:.0f} bytes in a manifest, {facts['result']:.0f} in results, "
          f"{facts['progress']:.0f} in ledger.jsonl, {facts['ledger']:.0f} in ledger.sqlite")
    print(f"ledger.jsonl may have 1 GiB, {int((1 << 30) / facts['progress']):,} stores a pipeline; a larger fleet is several "
          f"pipelines")
    rows = [plan(stores, cpus, facts) for stores in FLEETS for cpus in CPUS]
    print(ground.table(rows, ("stores", "CPUs", "stores a bundle", "bundles", "arrays", "submission s", "starts s",
                              "run h", "task overhead %", "files at a time", "MB there", "ledger MB")))
    return 0


def plan(stores, cpus, facts):
    size = max(16, min(int((BUNDLE_SECONDS - facts["fixed"]) / facts["store"]), max(1, stores // (4 * cpus))))
    bundles = -(-stores // size)
    arrays = -(-bundles // ARRAY)
    seconds = facts["fixed"] + size * facts["store"]
    starts = bundles / STARTS_PER_SECOND
    # Slurm starts tasks one after the other: no run is shorter than that.
    whole = max(-(-bundles // cpus) * seconds, starts)
    # Lock, start marker, results and done of each bundle; four files of an array and its folder; while a store is in
    # hand, its run directory. Each store has its backup beside it afterwards.
    files = bundles * 4 + arrays * 5 + min(stores, cpus * 2) * 4
    there = stores * (facts["manifest"] + facts["result"]) / 1e6
    return (f"{stores:,}".replace(",", " "), cpus, size, bundles, arrays, f"{arrays * SBATCH_SECONDS:.1f}",
            f"{starts:.0f}", f"{whole / 3600:.2f}", f"{100 * facts['fixed'] / seconds:.1f}", files, f"{there:.0f}",
            f"{stores * (facts['ledger'] + facts['progress']) / 1e6:.0f}")


def measured(given):
    """What two bundles of different size take, and what their files hold."""
    with ground.workspace("slurmplan") as folder:
        stores, times, facts = os.path.join(folder, "stores"), [], {}
        paths = ground.make_fleet(stores, 120, given.rows, given.seed, "1.0")
        facts["bytes"] = sum(map(os.path.getsize, paths)) // len(paths)
        with open(os.path.join(folder, "pipeline.yaml"), "w", encoding="utf-8") as file:
            file.write(PIPELINE.format(models=ground.MODELS, stores=100))
        # Bundles of 16 stores, the least.
        command = [ground.godwit(), "run", folder, "--engine", "array", "--quiet"]
        godwit([*command, "--detach"])
        manifest = glob.glob(os.path.join(folder, "state", "cluster", "*", "manifest.jsonl"))[0]
        facts["manifest"] = os.path.getsize(manifest) / 120
        with open(manifest, encoding="utf-8") as file:
            bundles = json.loads(file.readline())["bundles"]
        task = [ground.godwit(), "worker", "--manifest", manifest, "--index"]
        for index in range(len(bundles)):
            began = time.monotonic()
            godwit([*task, str(index)])
            times.append((time.monotonic() - began, bundles[index]["lines"]))
        began = time.monotonic()
        # What a task costs before its first store, but for reading the models.
        godwit([*task, "0"])
        done = time.monotonic() - began
        results = glob.glob(os.path.join(os.path.dirname(manifest), "*.results-*"))
        facts["result"] = sum(map(os.path.getsize, results)) / 120
        godwit(command)
        facts["progress"] = os.path.getsize(os.path.join(folder, "state", "ledger.jsonl")) / 120
        facts["ledger"] = os.path.getsize(os.path.join(folder, "ledger.sqlite")) / 120
    # Of the small bundle and the others: a line through the two.
    sizes = sorted({count for _, count in times})
    mean = {size: sum(t for t, c in times if c == size) / sum(1 for _, c in times if c == size) for size in sizes}
    facts["store"] = ((mean[sizes[-1]] - mean[sizes[0]]) / (sizes[-1] - sizes[0]) if len(sizes) > 1
                      else (mean[sizes[0]] - done) / sizes[0])
    facts["store"] = max(facts["store"], 0.001)
    facts["fixed"] = max(done, mean[sizes[-1]] - sizes[-1] * facts["store"])
    return facts


def godwit(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: exit {done.returncode}, {done.stderr.decode()[-1500:]}")
