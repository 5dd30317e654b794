"""The engine slurm on a cluster of this machine: a fleet and one large store over three nodes, the same as by the
engine local, whatever befalls nodes, controller and tasks meanwhile."""
import argparse
import hashlib
import os
import random
import shutil
import subprocess
import sys
import threading
import time

from . import fleetground, ground, slurmbox, slurmplan, slurmtroubles, tool

PIPELINE = """\
name: trial
stores: {{ roots: [stores] }}
models: {models}
shard: {{ bytes: {shard} }}
workers: {workers}
engine: {{ slurm: {{ bundle: {{ stores: {stores}, bytes: {bytes} }} }} }}
"""


def main():
    given = arguments()
    if given.simulate:
        return slurmplan.main(given)
    reason = slurmbox.why_not()
    if reason:
        print(f"slurm: skipped, since {reason}")
        return 0
    began = time.monotonic()
    with ground.workspace("slurm") as folder, slurmbox.Box(given.nodes, given.cpus) as box:
        trial = Trial(folder, given, box)
        trial.local()
        problems = trial.rounds() if given.crashes or given.pitfalls else trial.compared(trial.cluster())
    print(ground.table(trial.rows, ("run", "seconds", "migrated", "restarted", "resubmitted", "never begun", "digests")))
    if trial.local_seconds and trial.seconds and not (given.crashes or given.pitfalls):
        print(f"{given.nodes} nodes x {given.cpus} CPUs take {trial.seconds / trial.local_seconds:.2f} x the time of "
              f"{given.nodes * given.cpus} workers here; {trial.idle:.2f} s between two bundles of a slot")
    for line in problems[:20]:
        print("PROBLEM", line)
    print(f"slurm: {'FAILED' if problems else 'passed'} in {time.monotonic() - began:.0f} s")
    return 1 if problems else 0


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/slurm", description=__doc__)
    parser.add_argument("--stores", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=60, help="rows of a store of the fleet")
    parser.add_argument("--large-rows", type=int, default=2_000_000, help="rows of the large store; 0 for none")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--cpus", type=int, default=2)
    parser.add_argument("--workers", type=int, help="workers of a task; those of a node, and 1 where troubles strike")
    parser.add_argument("--bundle", type=int, help="stores of a bundle at most; 2000, and 25 where troubles strike")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--crashes", type=int, default=0, metavar="N", help="power cuts of nodes at random moments")
    parser.add_argument("--pitfalls", type=int, default=0, metavar="N", help="each of the other troubles so often")
    parser.add_argument("--only", nargs="*", metavar="TROUBLE", choices=sorted(slurmtroubles.TROUBLES))
    parser.add_argument("--simulate", action="store_true", help="large fleets, on paper")
    parser.add_argument("--short", action="store_true", help="60 stores, for continuous integration")
    given = parser.parse_args()
    if given.short:
        given.stores, given.rows, given.large_rows, given.bundle = 60, 20, 20_000, 8
    # Many small tasks side by side are struck more often; few large ones end sooner.
    struck = given.crashes or given.pitfalls
    given.bundle = given.bundle or (25 if struck else 2000)
    given.workers = given.workers or (1 if struck else given.cpus)
    return given


class Trial:
    def __init__(self, folder, given, box):
        self.folder, self.given, self.box = folder, given, box
        self.rows, self.seconds, self.local_seconds, self.idle = [], 0.0, 0.0, 0.0
        self.source = os.path.join(folder, "source")
        os.makedirs(self.source)
        stores = os.path.join(self.source, "stores")
        ground.make_fleet(os.path.join(stores, "small"), given.stores, given.rows, given.seed, "1.0")
        if given.large_rows:
            ground.make_fleet(os.path.join(stores, "large"), 1, given.large_rows, given.seed, "1.0")
        self.names = [os.path.relpath(path, stores) for path in ground.stores_in(stores)]
        largest = max(os.path.getsize(os.path.join(stores, name)) for name in self.names)
        # So that the large store is cut over nodes, and no other.
        cut = largest - 1 if given.large_rows else 1 << 30
        shard = max(64 << 10, min(16 << 20, largest // 24))
        with open(os.path.join(self.source, "pipeline.yaml"), "w", encoding="utf-8") as file:
            file.write(PIPELINE.format(models=ground.MODELS, stores=given.bundle, bytes=cut, shard=shard,
                                       workers=given.workers))
        self.wanted = {}

    def copy(self, name):
        place = os.path.join(self.folder, name)
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.source, place)
        os.sync()
        return place

    def local(self):
        place = self.copy("local")
        workers = self.given.nodes * self.given.cpus
        run = tool.run([ground.godwit(), "run", place, "--engine", "local", "--workers", str(workers), "--json"],
                       timeout=7200)
        self.take("local", run, place)
        if run.exit:
            raise SystemExit(f"the local run failed: exit {run.exit}, {run.stderr[-2000:]}")
        self.local_seconds = run.seconds
        self.wanted = digests(place, self.names)
        self.reference = results(run)
        shutil.rmtree(place)

    def take(self, name, run, place):
        summary = run.lines[-1] if run.lines else {}
        same = sum(self.wanted.get(n) == d for n, d in digests(place, self.names).items()) if self.wanted else "-"
        self.rows.append((name, f"{run.seconds:.1f}", summary.get("migrated", "?"),
                          summary.get("restarted", "-"), summary.get("resubmitted", "-"),
                          summary.get("never-started", "-"), same))

    def start(self, place):
        # A short lease, so that an attempt that stands still is overtaken while the trial lasts.
        env = tool.environment(**({"GODWIT_LEASE": 2} if self.given.pitfalls else {}))
        return tool.start([ground.godwit(), "run", place, "--engine", "slurm", "--json"], env=env)

    def cluster(self, name="slurm"):
        """A run that nothing befalls; its outcome and place."""
        place = self.copy(name)
        began = time.monotonic()
        run = tool.finish(self.start(place), began, 7200)
        self.take(name, run, place)
        self.seconds = run.seconds
        self.idle = idle_seconds(os.path.join(self.box.folder, "jobs.txt"))
        return run, place

    def compared(self, outcome):
        run, place = outcome
        problems = []
        summary = run.lines[-1] if run.lines else {}
        if run.exit or summary.get("migrated") != len(self.names):
            problems.append(f"exit {run.exit}, {summary} {run.stderr[-1500:]}")
        found = digests(place, self.names)
        problems += [f"{name}: another file than by the engine local" for name in self.names
                     if found.get(name) != self.wanted[name]]
        if not problems:
            given = results(run)
            problems += [f"{name}: {given.get(name)} and not {wanted}" for name, wanted in self.reference.items()
                         if given.get(name, (None,))[0] is not None and given[name] != wanted]
        return problems + fleetground.booked_once(place, len(self.names))

    def rounds(self):
        """Runs under troubles, until each has come so often as is wanted."""
        left = {name: self.given.pitfalls for name in self.given.only or slurmtroubles.TROUBLES if self.given.pitfalls}
        if self.given.crashes:
            left["crash"] = self.given.crashes
        rng, number, problems, done = random.Random(self.given.seed), 0, [], {}
        while any(left.values()) and not problems:
            number += 1
            place = self.copy("troubled")
            run = self.troubled(place, rng, left, done)
            self.take(f"round {number}", run, place)
            problems = self.compared((run, place))
            shutil.rmtree(place, ignore_errors=True)
        print("troubles:", ", ".join(f"{name} {count}" for name, count in sorted(done.items())))
        return problems

    def troubled(self, place, rng, left, done):
        """One run, started again where it ends early; strikes come while it is under way."""
        began, lines, code, stderr = time.monotonic(), [], 75, ""
        again = dict.fromkeys(("restarted", "resubmitted", "never-started"), 0)
        while code in (69, 74, 75) and time.monotonic() - began < 3600:
            process = self.start(place)
            over = threading.Event()
            striker = threading.Thread(target=self.strike, args=(place, rng, left, done, over))
            striker.start()
            run = tool.finish(process, time.monotonic(), 3600)
            over.set()
            striker.join()
            self.box.recover()
            code, stderr = run.exit, stderr + run.stderr
            summary = run.lines[-1] if run.lines else {}
            again = {key: count + (summary.get(key) or 0) for key, count in again.items()}
            lines = [*lines, *run.lines]
        if lines:
            lines[-1] = lines[-1] | again
        return tool.Run(code, lines, [], stderr, time.monotonic() - began)

    def strike(self, place, rng, left, done, over):
        slurmbox.wait(lambda: over.is_set() or slurmtroubles.running(), 120, "the first task")
        while not over.wait(rng.uniform(0.2, 1.5)):
            names = [name for name, count in left.items() if count > 0]
            if not names:
                return
            name = rng.choice(names)
            trouble = slurmtroubles.TROUBLES.get(name, slurmtroubles.crash)
            if trouble(self.box, rng, place, over):
                left[name] -= 1
                done[name] = done.get(name, 0) + 1


def digests(place, names):
    found = {}
    for name in names:
        with open(os.path.join(place, "stores", name), "rb") as file:
            found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def results(run):
    """What each store's result line says, without times and places."""
    found = {}
    for line in run.lines:
        if isinstance(line, dict) and line.get("event") == "result" and line["verdict"] != "pending":
            name = line["store"].split("/stores/", 1)[1]
            found[name] = (line.get("counts"), line["verdict"], line.get("rows"), str(line.get("losses")))
    return found


def idle_seconds(path):
    """Between the end of a task and the start of the next on the same node, the median."""
    tasks = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            fields = dict(part.split("=", 1) for part in line.split() if "=" in part)
            if fields.get("Name", "").startswith("godwit-"):
                start, end = (time.mktime(time.strptime(fields[key], "%Y-%m-%dT%H:%M:%S")) for key in ("StartTime", "EndTime"))
                tasks.setdefault(fields["NodeList"], []).append((start, end))
    gaps = []
    for spans in tasks.values():
        ends = sorted(end for _, end in spans)
        for start, _ in spans:
            before = [end for end in ends if end <= start]
            if before:
                gaps.append(start - before[-1])
    return sorted(gaps)[len(gaps) // 2] if gaps else 0.0


if __name__ == "__main__":
    sys.exit(main())
