"""Migrations by Godwit against the SQL script that an engineer would write, cp and ALTER TABLE, cp
alone, and Python row by row. All take turns, so that a machine whose speed drifts drifts for all.

a: columns renamed, dropped, added, widened; b: every entity number shifts; c: one small table
changes; d: a mapping model with expressions; e: a policy. Every rival's rows are proven to be
Godwit's before anything is timed.
"""
import argparse
import os
import sys

from . import benchcalls, benchfleet, benchhistory, benchreport, benchresume, benchrivals, ground

# Row by row takes minutes beyond this.
ROWS_LIMIT = 100


def options():
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100, help="size of the store: 100, 700, 1500, 5000")
    parser.add_argument("--only", nargs="+", choices="abcde", default=list("abcde"), help="migrations")
    parser.add_argument("--rows", action="store_true", help=f"row by row above {ROWS_LIMIT} MB, too")
    parser.add_argument("--runs", type=int, help="rounds: 5, of fleets 3")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fleet", action="store_true", help="many stores of 1 MB and of 100 KB, and a run with nothing to do")
    parser.add_argument("--stores", type=int, default=1000, help="how many of each size")
    parser.add_argument("--rerun", type=int, default=10_000, metavar="STORES", help="finished stores of the run with nothing to do")
    parser.add_argument("--calls", action="store_true", help="count the system calls of a fleet instead, by strace")
    parser.add_argument("--resume", action="store_true", help="kill a run at half of its rows and type the command again")
    parser.add_argument("--demand", action="store_true", help="exit code 1 where a goal is missed")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--record", action="store_true", help="add the ratios to Benchmarks/history.jsonl")
    parser.add_argument("--picture", metavar="FILE", help="draw the history as SVG; runs nothing")
    return parser.parse_args()


def compare(given, folder):
    """{migration: {contender: samples}}, and the figures for JSON."""
    found = benchrivals.migrations(folder, given.only, ["--megabytes", str(given.megabytes), "--seed", str(given.seed)])
    with_rows = given.rows or given.megabytes <= ROWS_LIMIT
    contenders = {m.name: m.contenders(with_rows, given.workers) for m in found}
    runs = given.runs or 5
    for migration in found:
        ground.say(f"{migration.name}: a round to warm up, and to compare rows …")
        benchrivals.warm_up(migration, contenders[migration.name], folder)
    samples = {name: {c: [] for c in all_of} for name, all_of in contenders.items()}
    for number in range(runs):
        ground.say(f"round {number + 1} of {runs} …")
        for migration in found:
            names = list(contenders[migration.name])
            # Whoever comes first in a round finds other caches than whoever comes last.
            start = number % len(names)
            for name in names[start:] + names[:start]:
                samples[migration.name][name].append(
                    benchrivals.turn(migration, contenders[migration.name][name], folder, name))
    figures = {m.name: benchreport.figures(m, samples[m.name]) for m in found}
    return samples, {"megabytes": given.megabytes, "bytes": os.path.getsize(found[0].store), "runs": runs,
                     "workers": given.workers, "migrations": figures}


def stores(given, folder):
    samples, found = compare(given, folder)
    found["goals"] = benchreport.goals(samples, given.megabytes)
    print(f"{found['bytes'] / 1e6:.1f} MB, {found['runs']} rounds in turn, every rival's rows equal to Godwit's")
    for name, figures in found["migrations"].items():
        benchreport.print_migration(name, figures)
    results = {f"{name}, {given.megabytes} MB": benchhistory.result(figures["contenders"]["godwit"])
               for name, figures in found["migrations"].items()}
    return found, results


def main():
    given = options()
    if given.picture:
        return benchhistory.draw(given.picture)
    part = (benchcalls.run if given.calls else benchfleet.run if given.fleet else benchresume.run if given.resume
            else stores)
    ground.godwit()  # built before anything is timed
    with ground.workspace("bench") as folder:
        found, results = part(given, folder)
    goals = found.get("goals", [])
    benchreport.print_goals(goals)
    if given.json:
        name, date = benchhistory.commit()
        ground.write_json(given.json, {"commit": name, "date": date, "machine": benchhistory.machine()} | found)
    if given.record:
        ground.say(f"recorded {', '.join(results)} of {benchhistory.record(results)}")
    return benchreport.exit_code(goals, given.demand)


if __name__ == "__main__":
    sys.exit(main())
