"""One failed call of the operating system at a time, in migrations in place: lightweight, mapped and chained, and
in the run of a pipeline over a small fleet.

A preloaded library (faults.c) counts the calls of a run and of its workers, and makes one of them fail:
EIO, ENOSPC, EMFILE, EINTR, or fewer bytes than were asked for. Whatever happens, the store at its path
is the source or the destination, whole; the exit code tells what it was; and the same command again ends
as an undisturbed run does. Of a fleet the ledger then has each store migrated once, and every backup.
"""
import argparse
import collections
import concurrent.futures
import os
import random
import shutil
import struct
import subprocess
import sys
import time

from . import chains, fleetground, ground, ledger, preload, tool

# What a run may end with. Nothing is damaged, and nobody has used the command wrongly.
MODES = {"EIO": (1, {0, 74}), "ENOSPC": (2, {0, 75}), "EMFILE": (3, {0, 69, 74, 75, 78}),
         "EINTR": (4, {0}), "short": (5, {0})}
# What a call may end with besides. SQLite flushes what it writes into a private clone, and takes
# every failure for one; where it cannot open a file for writing it tries for reading, and tells the
# second reason. Who cannot ask whether somebody waits for a lease must take it that somebody does.
# Where no worker can be started, or has no streams, that is what is said. A store that cannot be
# looked at may lie on a volume that is away.
EXCUSED = {("EINTR", "fsync"): 74, ("EINTR", "fdatasync"): 74, ("ENOSPC", "open64"): 74, ("EIO", "fcntl"): 75,
           ("EIO", "posix_spawn"): 69, ("EIO", "open /dev/null"): 78, ("EIO", "lstat"): 75}
PLAN = "QQII512s"


class Subject:
    """One store and the command that migrates it in place."""
    ends = frozenset()  # further exit codes

    def __init__(self, name, original, command):
        self.name, self.original, self.command = name, original, command

    def copy(self, folder):
        """What the command is given."""
        return ground.copy_store(self.original, folder)

    def stores(self, place):
        return [place]

    def state(self, place):
        """What each store holds, and the names of its files of external data."""
        return [(chains.digest(store), chains.external(store)) for store in self.stores(place)]

    def prepare(self, folder):
        """What the source and an undisturbed run's destination hold."""
        place = self.copy(os.path.join(folder, "reference"))
        self.before = self.state(place)
        run = tool.run(self.command(place))
        self.after = self.state(place)
        if run.exit or self.before == self.after:
            sys.exit(f"{self.name}: the undisturbed run did not migrate: {run.why(2000)}")
        return self

    def disturbed(self, place):
        """[problem] of what a run has left that may have met a failure."""
        return [f"{os.path.basename(store)} is neither source nor destination"
                for (found, _), store, before, after in zip(self.state(place), self.stores(place), self.before, self.after)
                if found not in (before[0], after[0])]

    def ended(self, place):
        """[problem] of what the same command has left when it was run again."""
        left = [n for store in self.stores(place) for n in os.listdir(os.path.dirname(store))
                if n.endswith(".godwit") or ".partial-" in n or "clone" in n]
        return (["the same command again ends with 0, and not with the destination"] * (self.state(place) != self.after)
                + [f"left behind: {left}"] * bool(left))


class Fleet(Subject):
    """A pipeline over a few stores."""
    ends = frozenset({3})

    def copy(self, folder):
        shutil.copytree(self.original, folder)
        return folder

    def stores(self, place):
        # Named by the original: a run that was cut off leaves files of its own beside them.
        return [os.path.join(place, os.path.relpath(store, self.original))
                for store in ground.stores_in(os.path.join(self.original, "stores"))]

    def ended(self, place):
        return super().ended(place) + fleetground.booked_once(place, len(self.stores(place)))


def subjects(folder, rows):
    recipes = ground.make_fleet(os.path.join(folder, "recipes"), 1, rows, 3, wal=True, external=True)[0]
    accounts = ledger.make_store(os.path.join(folder, "ledger"), rows, 3, wal=True)
    bundle = chains.write_models(os.path.join(folder, "chain"))
    shop = os.path.join(folder, "chain", "original", "a.sqlite")
    os.makedirs(os.path.dirname(shop))
    fleet = os.path.join(folder, "fleet")
    ground.make_fleet(os.path.join(fleet, "stores"), 3, rows, 3, wal=True, external=True)
    with open(os.path.join(fleet, "pipeline.yaml"), "w", encoding="utf-8") as file:
        file.write(f"name: trial\nstores: {{ roots: [stores] }}\nmodels: {ground.MODELS}\n")
    subprocess.run([ground.fixtures(), "make-store", "--model", os.path.join(bundle, "Shop.xcdatamodel"), "--output",
                    shop, "--rows", str(rows), "--external", "0.5", "--wal"], check=True, stdout=subprocess.DEVNULL)

    def command(*words, **more):
        return lambda store: tool.migrate_command(store, *words, workers=1, **more)
    return [Subject("lightweight", recipes, command([ground.MODELS], ground.DESTINATION)),
            Subject("mapped", accounts, command([ledger.MODELS], ledger.NAME, extra=["--mapping", ledger.MAPPING])),
            Subject("chained", shop, command([bundle], extra=["--chain", "progressive"])),
            Fleet("fleet", fleet, lambda place: [ground.godwit(), "run", place, "--workers", "1", "--json"])]


def disturbed(subject, place, library, mode, target, folder):
    """Runs with one call failing; gives the run, how many calls there were, and which one it was."""
    plan = os.path.join(folder, "plan")
    with open(plan, "wb") as file:
        file.write(struct.pack(PLAN, 0, target, MODES[mode][0], 0, b""))
    run = tool.run(subject.command(place), timeout=120,
                   env=tool.environment(LD_PRELOAD=library, GODWIT_FAULTS=plan, GODWIT_WORKER_TIMEOUT=20))
    with open(plan, "rb") as file:
        count, _, _, fired, what = struct.unpack(PLAN, file.read())
    # Nothing where the process was killed before it could say which call it was.
    return run, count, what.split(b"\0")[0].decode(errors="replace") if fired else None


def calls(subject, library, mode, folder):
    """How many calls of a run the mode applies to."""
    place = subject.copy(os.path.join(folder, "counted"))
    run, count, _ = disturbed(subject, place, library, mode, 0, folder)
    shutil.rmtree(os.path.join(folder, "counted"))
    if run.exit != 0 or not count:
        sys.exit(f"{subject.name}: {count} calls counted, {run.why(2000)}")
    return count


def problems_of(subject, place, run, mode, what):
    found = []
    if run.hung:
        found.append("it hangs")
    if run.exit < 0 or tool.CRASH.search(run.stderr):
        found.append(f"a process crashed: {run.why()}")
    elif run.exit not in MODES[mode][1] | subject.ends and run.exit not in (
            EXCUSED.get((mode, call)) for call in (what.partition(" ")[0], what.rpartition(" in ")[0])):
        found.append(f"the exit code is not one of {sorted(MODES[mode][1])}: {run.why()}")
    return found + subject.disturbed(place)


def trial(subject, library, mode, target, folder):
    """(the call that failed or None, the exit code, [problem])"""
    where = os.path.join(folder, f"{subject.name}-{mode}-{target}")
    os.makedirs(where)
    try:
        place = subject.copy(os.path.join(where, "here"))
        run, _, what = disturbed(subject, place, library, mode, target, where)
        if what is None:
            return None, run.exit, [] if run.exit == 0 else [f"nothing failed, and {run.why()}"]
        found = problems_of(subject, place, run, mode, what)
        # A run that overcame it is finished; the command again finds that.
        again = tool.run(subject.command(place))
        found += [f"the same command again: {again.why()}"] if again.exit else subject.ended(place)
        call = what.replace(where, "…")
        return what.partition(" ")[0], run.exit, [f"{subject.name}, {mode} at call {target}, {call}: {p}" for p in found]
    except Exception as error:  # a store that cannot be read any more, above all
        return what, None, [f"{subject.name}, {mode} at call {target}, {what}: {error}"]
    finally:
        shutil.rmtree(where, ignore_errors=True)


_state = {}


def _work(number, mode, target):
    return trial(_state["subjects"][number], _state["library"], mode, target, _state["folder"])


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/faults", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a sample of the calls")
    parser.add_argument("--sample", type=int, help="at most so many calls of each kind of fault and migration")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--only", choices=["lightweight", "mapped", "chained", "fleet"])
    parser.add_argument("--kills", type=int, default=None, help="random kills besides; 1000 without --short")
    options = parser.parse_args(arguments)
    sample = options.sample or (1 if options.short else None)
    os.environ["GODWIT"], os.environ["GODWIT_FIXTURES"] = ground.godwit(), ground.fixtures()
    began, rng, failed = time.monotonic(), random.Random(options.seed), 0
    with ground.workspace("faults") as folder:
        found = [s.prepare(os.path.join(folder, "of-" + s.name)) for s in subjects(folder, options.rows)
                 if options.only in (None, s.name)]
        _state.update(subjects=found, library=preload.shim(folder, "faults"), folder=folder)
        with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
            for number, subject in enumerate(found):
                for mode in options.modes:
                    total = calls(subject, _state["library"], mode, folder)
                    targets = range(1, total + 1)
                    if sample and sample < total:
                        targets = sorted(rng.sample(targets, sample))
                    codes, struck, wrong = collections.Counter(), 0, []
                    for what, code, problems in pool.map(_work, *zip(*((number, mode, t) for t in targets))):
                        struck += what is not None
                        codes[code] += 1
                        wrong += problems
                    for problem in wrong:
                        print(problem, flush=True)
                    failed += len(wrong)
                    ends = ", ".join(f"{n} with {c}" for c, n in sorted(codes.items(), key=str))
                    print(f"{subject.name}, {mode}: {total} calls, {struck} failed one by one, ended {ends}; "
                          f"{len(wrong)} problems, {time.monotonic() - began:.0f} s", flush=True)
    kills = options.kills if options.kills is not None else 0 if options.short or sample else 1_000
    if kills:
        from . import sweep
        failed += sweep.main(["--kills", str(kills), "--seed", str(options.seed), "--rows", "3000", "--no-steps"]) or 0
    print(f"{failed} problems")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
