"""A fleet from cron: stores of five versions, some damaged, in use, foreign, or where nothing can be written.

Every sound store is migrated and judged by the oracle, every other one has the right reason, and the counts
reconcile; a second run has only the bad ones left. `--kill` and `--term` strike while it runs, `--at-once`
starts eight runs together. Whatever happens, no store is lost or half-done. Last the run is rolled back: every
store is what it was, bit for bit, but for one that was changed since.
"""
import argparse
import collections
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

from . import fleetground, ground, judge, processes, tool

# What may become of a store of each kind: (verdict, reason), where nil is any.
EXPECTED = {
    "locked": {("pending", "in-use")},
    "reading": {("pending", "in-use")},
    "writing": {("pending", "in-use"), ("pending", "changed"), ("migrated", None)},
    "full": {("pending", "disk-full")},
    "foreign": {("refused", "foreign-store")},
    "read-only": {("failed", "output"), ("failed", "read-only")},
}


class Outcome:
    """What a run of the pipeline said."""

    def __init__(self, run):
        self.run = run
        self.results = {x["store"]: x for x in run.lines
                        if isinstance(x, dict) and x.get("event") == "result" and "store" in x}
        summaries = [x for x in run.lines if isinstance(x, dict) and x.get("event") == "summary"]
        self.summary = summaries[-1] if summaries else {}

    def of(self, store):
        found = self.results.get(store.path, {})
        reasons = [r.get("reason") for r in found.get("reasons") or []]
        return found.get("verdict"), reasons[0] if reasons else None

    def crashes(self):
        """[problem], where a process ended by an error of its own."""
        found = tool.CRASH.search(self.run.stderr)
        return [f"a process crashed: {found.group()}"] if found else []

    def text(self):
        """The summary without what the table shows."""
        return json.dumps({k: v for k, v in self.summary.items() if k not in ("event", "reasons", "pipeline")})


def start(fleet):
    return tool.start([ground.godwit(), "run", fleet.pipeline, "--json"])


def run(fleet, timeout=3600):
    began = time.monotonic()
    return Outcome(tool.finish(start(fleet), began, timeout))


def reconcile(outcome, found):
    """The counts of the summary add up to the stores that there are."""
    summary = outcome.summary
    counts = {k: summary.get(k, 0) for k in ("migrated", "same-model", "refused", "needs-mapping", "quarantined",
                                             "failed", "pending")}
    problems = []
    if summary.get("found") != found:
        problems.append(f"{summary.get('found')} stores were found of {found}")
    if sum(counts.values()) != summary.get("found"):
        problems.append(f"the counts do not add up: {summary}")
    return problems + outcome.crashes()


def expectations(fleet, outcome, is_first):
    """Stores whose verdict or reason is not what their kind calls for."""
    problems, table = [], collections.Counter()
    for store in fleet.stores:
        verdict, reason = outcome.of(store)
        table[(store.kind, verdict, reason)] += 1
        if store.kind == "sound":
            wanted = {("same-model", None)} if store.version == fleetground.LAST else {("migrated", None)}
            if not is_first:
                wanted |= {("same-model", None)}
        elif store.kind == "damaged":
            if verdict not in ("migrated", "same-model", "refused", "failed", "needs-mapping", "quarantined") or (
                    reason in ("coordination-lost", "workers-lost")):
                problems.append(f"{store.path} ({store.note}): {verdict} {reason}")
            continue
        else:
            wanted = EXPECTED[store.kind]
            if not is_first and verdict == "quarantined":
                continue
        if (verdict, reason) not in wanted and (verdict, None) not in wanted:
            messages = [r.get("message") for r in outcome.results.get(store.path, {}).get("reasons") or []]
            problems.append(f"{store.kind} {store.path}: {verdict} {reason}: {messages[:1]}")
    rows = sorted((k, str(v), str(r), n) for (k, v, r), n in table.items())
    return problems, ground.table(rows, ("kind", "verdict", "reason", "stores"))


def judged(fleet, outcome, count, rng):
    """The oracle over a sample of sound stores, and over every damaged one that counts as migrated."""
    problems = []
    sound = [s for s in fleet.of_kind("sound") if s.version != fleetground.LAST]
    for store in rng.sample(sound, min(count, len(sound))):
        found = judge.compare(store.template, store.path, fleetground.model(store.version),
                              fleetground.model(fleetground.LAST))
        if found["total"] != 0:
            problems.append(f"{store.path}: {found['refusals'] or found['first'][:2]}")
        bad = judge.unsound(judge.findings(store.path, fleetground.model(fleetground.LAST)))
        problems += [f"{store.path}: breaks {b}" for b in bad]
    for store in fleet.of_kind("damaged"):
        if outcome.of(store)[0] == "migrated":
            bad = judge.unsound(judge.findings(store.path, fleetground.model(fleetground.LAST)))
            problems += [f"{store.path} ({store.note}): migrated, and breaks {b}" for b in bad]
    return problems


def contents(store):
    """The bytes of a store's files, as digests. The shared memory of a WAL holds nothing."""
    return {name: file["sha256"] for name, file in judge.state(store.path)["files"].items()
            if file and not name.endswith("-shm")}


def roll_back(fleet, was, codes, name="rollback"):
    """Puts the run back; gives how that ended, and [problem]. 3: a store has changed since."""
    done = tool.run([ground.godwit(), "rollback", fleet.pipeline, "--json"], 600)
    problems = [] if done.exit in codes else [f"{name}: exit {done.exit}: {done.stderr[-300:]}"]
    return done, problems + [f"{name}: {store.path} is not what it was" for store, files in was.items()
                             if contents(store) != files]


def rolled_back(fleet, before, rng):
    """Puts the whole run back, but for a store that was changed since."""
    changed = rng.choice(list(before))
    with sqlite3.connect(changed.path) as database:
        database.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 1")
    database.close()
    done, problems = roll_back(fleet, before | {changed: contents(changed)}, {3})
    print(f"rollback: exit {done.exit}, {done.seconds:.1f} s: {len(before)} stores compared")
    if changed.path not in {x["store"] for x in done.lines if isinstance(x, dict) and x.get("verdict") == "refused"}:
        problems.append(f"rollback: {changed.path} was changed, and is not named as refused")
    return problems


def writers(fleet):
    """What an application committed is in its store."""
    problems = []
    for store in fleet.of_kind("writing"):
        turn, titles = fleetground.last_turn(store)
        if turn is not None and titles != {f"turn {turn}"}:
            problems.append(f"{store.path}: the application committed turn {turn}, the store has {sorted(titles)[:3]}")
    return problems


def strike(fleet, rng, number, seconds):
    """One start that is struck by signals until it ends: SIGKILL strikes any of its processes, again and again, and
    SIGTERM the coordinator or all of them, as `timeout` and a service manager do."""
    process, began, strikes = start(fleet), time.monotonic(), 0
    while True:
        try:
            # Its output is read meanwhile: a full pipe would hold it up.
            process.communicate(timeout=rng.uniform(0.3, seconds))
            break
        except subprocess.TimeoutExpired:
            strikes += 1
            if number != signal.SIGKILL:
                rng.choice((os.kill, os.killpg))(process.pid, number)
                break
            below = processes.handles([process.pid] + processes.descendants(process.pid))
            if below:
                rng.choice(below).send(number)
            for handle in below:
                handle.close()
    return Outcome(tool.finish(process, began, 600)), strikes


def storm(fleet, rng, number, seconds):
    """Strikes until a start comes to its end; gives the last outcome, how many starts and strikes there were, and
    [problem] of those before."""
    starts, strikes, problems = 0, 0, []
    while True:
        starts += 1
        outcome, more = strike(fleet, rng, number, seconds + starts / 4)
        strikes += more
        problems += outcome.crashes()
        if outcome.run.exit in (0, 3) or (outcome.run.exit == 75 and outcome.summary.get("pending", 0) and not any(
                "stopped" == outcome.of(s)[1] for s in fleet.stores) and len(outcome.results) == len(fleet.stores)):
            return outcome, starts, strikes, problems


def at_once(fleet, times, before, starts=8):
    """Runs that start together: one works, and the others end with 11 or find nothing left to do. Then all is put
    back, so that the next have as much to do."""
    problems = []
    for turn in range(times):
        if turn:
            problems += roll_back(fleet, before, {0, 3}, f"rollback {turn}")[1]
        began = time.monotonic()
        runs = [Outcome(tool.finish(p, began, 600)) for p in [start(fleet) for _ in range(starts)]]
        problems += [problem for r in runs for problem in r.crashes()]
        codes = collections.Counter(r.run.exit for r in runs)
        if set(codes) - {0, 3, 11, 75} or codes[11] == starts:
            problems.append(f"eight at once ended with {dict(codes)}")
        left = sum(contents(store) == was for store, was in before.items())
        if left:
            problems.append(f"eight at once left {left} stores as they were")
    return problems


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/fleet", description=__doc__)
    parser.add_argument("--stores", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=100, help="stores for the oracle")
    parser.add_argument("--kill", action="store_true", help="kill -9 of any process, every few seconds")
    parser.add_argument("--term", action="store_true", help="SIGTERM every few seconds")
    parser.add_argument("--every", type=float, default=4, metavar="SECONDS")
    parser.add_argument("--at-once", type=int, default=0, metavar="TIMES")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args(arguments)
    ground.skip_unless_shared("fleet")
    rng = random.Random(options.seed)
    folder = tempfile.mkdtemp(prefix="fleet-", dir=os.environ.get("GODWIT_TRIAL_FOLDER"))
    fleet = fleetground.Fleet(folder, options.seed)
    problems, began = [], time.monotonic()
    try:
        templates = fleetground.make_templates(os.path.join(folder, "templates"), options.seed, options.rows)
        fleet.fill(templates, options.stores, max(1, options.stores * 3 // 100), judge.mutate)
        fleet.add_difficult(templates, each=max(1, options.stores // 200))
        fleet.write_pipeline()
        before = {s: contents(s) for s in fleet.of_kind("sound") if s.version != fleetground.LAST}
        fleet.start_applications()
        ground.say(f"{len(fleet.stores)} stores in {time.monotonic() - began:.0f} s")
        if options.at_once:
            problems += at_once(fleet, options.at_once, before)
        starts, strikes = 1, 0
        if options.kill or options.term:
            number = signal.SIGKILL if options.kill else signal.SIGTERM
            outcome, starts, strikes, found = storm(fleet, rng, number, options.every)
            problems += found
        else:
            outcome = run(fleet)
        problems += reconcile(outcome, len(fleet.stores))
        calm = not (options.kill or options.term or options.at_once)
        found, table = expectations(fleet, outcome, is_first=calm)
        print(table)
        print(f"{starts} {'start' if starts == 1 else 'starts'}, {strikes} strikes, exit {outcome.run.exit}, "
              f"{outcome.run.seconds:.1f} s: {outcome.text()}")
        again = run(fleet)
        problems += found + reconcile(again, len(fleet.stores)) + expectations(fleet, again, is_first=False)[0]
        print(f"again: exit {again.run.exit}, {again.run.seconds:.1f} s: {again.text()}")
        if again.run.exit == 0:
            problems.append("the second run ended with 0, and stores are not migrated")
        fleet.end_applications()
        problems += writers(fleet) + judged(fleet, again, options.sample, rng) + rolled_back(fleet, before, rng)
    finally:
        fleet.close()
        if not (options.keep and problems):
            shutil.rmtree(folder, ignore_errors=True)
    for problem in problems[:40]:
        print(f"PROBLEM {problem}")
    if fleet.skipped:
        print(f"skipped: {'; '.join(sorted(set(fleet.skipped))[:6])}")
    print(f"{len(fleet.stores)} stores, {len(problems)} problems, {time.monotonic() - began:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
