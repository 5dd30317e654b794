"""One store of about 100 MB, migrated by Godwit, by a hand-written SQL script, and copied by cp; then
the same store by a mapping model, with copies and with expressions, and without any.

All take turns, so that a machine whose speed drifts drifts for all of them. Every one ends with its
result on disk; Godwit's time includes its validation, its verification and its commit. Processor
seconds are those of all its processes: they say more than the clock while others use the machine.
"""
import argparse
import os
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time

from . import ground, tool


# The migrations to one version: lightweight, by a mapping model of copies, and by one of expressions.
MAPPED_VERSION = "Bench 3"
MAPPINGS = {"inferred": None, "copies": "Bench.copies.yaml", "expressions": "Bench.expressions.yaml"}
# One entity by a policy that sets three attributes: objects a second and core, at least.
POLICY_MAPPING, POLICY_RATE = "Bench.policies.yaml", 200_000
# Expressions over attributes may cost so many times the pipeline without them.
EXPRESSIONS_LIMIT = 1.3


def flush(path):
    """What the script and cp leave to the caller: the result on disk, its folder's entry, too."""
    for name in (path, os.path.dirname(path)):
        descriptor = os.open(name, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def timed(action):
    began = time.monotonic()
    value = action()
    return time.monotonic() - began, value


def processor_seconds():
    """Of all children that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def script_runner(script, out):
    """The script through the sqlite3 shell where there is one, else through Python's SQLite."""
    shell = shutil.which("sqlite3")
    def run():
        if shell:
            with open(script, "rb") as text:
                subprocess.run([shell, out], stdin=text, check=True, stdout=subprocess.DEVNULL)
        else:
            database = sqlite3.connect(out)
            with open(script, encoding="utf-8") as text:
                database.executescript(text.read())
            database.close()
        flush(out)
    return run


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with ground.workspace("bench") as folder:
        store, script = os.path.join(folder, "bench.sqlite"), os.path.join(folder, "bench.sql")
        subprocess.run([ground.fixtures(), "bench-store", "--output", store, "--sql", script,
                        "--megabytes", str(options.megabytes), "--seed", str(options.seed)],
                       check=True, stdout=sys.stderr)
        model = os.path.join(folder, "Bench.xcdatamodeld")
        times, results = {"godwit": [], "script": [], "cp": []}, []
        for number in range(options.runs + 1):      # the first round warms the caches
            out = {name: os.path.join(folder, name + ".sqlite") for name in times}
            took = {}
            command = tool.migrate_command(store, [model], "Bench 2", out["godwit"], options.workers)
            took["godwit"], run = timed(lambda: tool.run(command))
            if run.exit:
                sys.exit(f"godwit failed: {run.why()}")
            took["script"], _ = timed(script_runner(script, out["script"]))
            took["cp"], _ = timed(lambda: (shutil.copyfile(store, out["cp"]), flush(out["cp"])))
            if number:
                results.append(run.result)
                for name, seconds in took.items():
                    times[name].append(seconds)
            for path in out.values():
                os.remove(path)
                shutil.rmtree(path + ".godwit", ignore_errors=True)
        report(store, times, results)
        # Both are told, whatever comes of the first.
        return max(mapped(folder, store, model, options), policies(folder, store, model, options))


def mapped(folder, store, model, options):
    """The same store by mapping models; the exit code."""
    names = list(MAPPINGS)
    clock, processor, results = ({n: [] for n in names} for _ in range(3))
    for number in range(options.runs + 1):
        # Whoever comes first in a round finds other caches than whoever comes last.
        for name in names[number % len(names):] + names[:number % len(names)]:
            out = os.path.join(folder, name + ".sqlite")
            file = MAPPINGS[name]
            extra = ["--mapping", os.path.join(ground.ROOT, "Fixtures", file)] if file else []
            command = tool.migrate_command(store, [model], MAPPED_VERSION, out, options.workers, extra=extra)
            before = processor_seconds()
            took, run = timed(lambda: tool.run(command))
            if run.exit:
                sys.exit(f"godwit failed: {run.why()}")
            if number:
                clock[name].append(took)
                processor[name].append(processor_seconds() - before)
                results[name].append(run.result)
            os.remove(out)
            shutil.rmtree(out + ".godwit", ignore_errors=True)
    rows = []
    for name in names:
        copy = statistics.median(s["seconds"] for r in results[name] for s in r["stages"] if s["stage"] == "copy")
        rows.append((name, f"{statistics.median(clock[name]):.2f}", f"{ratio(clock, name):.2f}",
                     f"{statistics.median(processor[name]):.2f}", f"{ratio(processor, name):.2f}", f"{copy:.3f}"))
    print()
    print(ground.table(rows, ("by mapping model", "median s", "to copies", "processor s", "to copies", "copy stage s")))
    found = ratio(processor, "expressions")
    print(f"expressions over attributes: {found:.2f} times the processor time of copies, "
          f"{ratio(clock, 'expressions'):.2f} times by the clock (at most {EXPRESSIONS_LIMIT})")
    return 0 if found <= EXPRESSIONS_LIMIT else 1


def policies(folder, store, model, options):
    """What a policy costs, in the processor time of its worker; the exit code."""
    ground.use_policies()
    out, rates = os.path.join(folder, "policies.sqlite"), {"copy": [], "copy and link": []}
    for number in range(options.runs + 1):
        run = tool.run(tool.migrate_command(store, [model], MAPPED_VERSION, out, 1, extra=[
            "--mapping", os.path.join(ground.ROOT, "Fixtures", POLICY_MAPPING)]))
        if run.exit:
            sys.exit(f"godwit-trial failed: {run.why()}")
        if number:
            stages = {s["stage"]: s for s in run.result["stages"]}
            rows, copy = stages["copy"]["rows"], stages["copy"]["processorSeconds"]
            rates["copy"].append(rows / copy)
            rates["copy and link"].append(rows / (copy + stages["link"]["processorSeconds"]))
        os.remove(out)
        shutil.rmtree(out + ".godwit", ignore_errors=True)
    print()
    print(f"a policy that sets three attributes, {rows} objects, objects a second and core:")
    for name, found in rates.items():
        print(f"{name}: {min(found):,.0f} to {max(found):,.0f}, median {statistics.median(found):,.0f}")
    print(f"at least {POLICY_RATE:,} with all hooks of both stages")
    return 0 if statistics.median(rates["copy and link"]) >= POLICY_RATE else 1


def ratio(times, name):
    """The median of the rounds' ratios to the copies."""
    return statistics.median(a / b for a, b in zip(times[name], times["copies"]))


def report(store, times, results):
    size = os.path.getsize(store) / 1e6
    print(f"{size:.1f} MB, {results[0]['rows']} objects, {len(results)} rounds in turn")
    rows = []
    for name, seconds in times.items():
        ratios = sorted(a / b for a, b in zip(seconds, times["script"]))
        rows.append((name, f"{min(seconds):.2f}", f"{statistics.median(seconds):.2f}",
                     f"{max(seconds):.2f}", f"{statistics.median(ratios):.2f}"))
    print(ground.table(rows, ("", "min s", "median s", "max s", "ratio to the script")))
    stages = []
    for place, stage in enumerate(results[0]["stages"]):
        seconds = statistics.median(r["stages"][place]["seconds"] for r in results)
        rate = f"{stage['rows'] / seconds:,.0f}" if stage["rows"] and seconds else ""
        stages.append((stage["stage"], stage["units"], f"{seconds:.3f}", rate))
    print(ground.table(stages, ("stage", "units", "median s", "rows/s")))
    for kind in ("coordinator", "worker"):
        peak = max(r["peakRSS"][kind] for r in results) / 2 ** 20
        print(f"peak memory of the {kind}: {peak:.0f} MiB")


if __name__ == "__main__":
    sys.exit(main())
