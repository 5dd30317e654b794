"""One store of about 100 MB, migrated by Godwit, by a hand-written SQL script, and copied by cp.

The three take turns, so that a machine whose speed drifts drifts for all of them. Every one ends
with its result on disk; Godwit's time includes its validation, its verification and its commit.
"""
import argparse
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time

from . import ground, tool


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
    main()
