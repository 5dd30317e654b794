"""Power cuts: every state that one may leave of a commit in place, laid out and recovered.

One run is recorded call by call, see disktrace. For each moment of its commit, and for a sample of
moments before, the states are made that a power cut may leave by POSIX's rules and ext4's: what was
not flushed may be missing, torn or zero, in any combination, names too; what was flushed is there. In
each state there must be one whole store at the store's path, old or new, and the same command again
must end with the new one and the backup.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import glob
import hashlib
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import time

from . import chains, crashes, disktrace, ground, judge, ledger, tool

KINDS = ("lightweight", "mapped", "chained", "settled", "small", "small-wal")
# More parts than this are not combined in every way.
MOST_COMBINED = 4
RANDOM_STATES = 4
# Never flushed, and nothing depends on it.
IDLE = ("events.jsonl",)


def subject_of(kind, folder, rows):
    """A store with a WAL and external data files, and how it is migrated; `settled` and `small` have no WAL.

    The small ones are migrated as stores of a pipeline.
    """
    if kind == "mapped":
        return crashes.Subject.generated(folder, rows, 7, wal=True, workers=1, shard_bytes=1 << 20, mapped=ledger.MAPPING)
    if kind == "chained":
        bundle = chains.write_models(folder)
        store = made(os.path.join(bundle, "Shop.xcdatamodel"), os.path.join(folder, "original", "a.sqlite"), rows, ["--wal"])
        return Chained(store, bundle, "Shop 10", 1, 1 << 20)
    model = os.path.join(ground.MODELS, "Recipes.xcdatamodel")
    store = made(model, os.path.join(folder, "original", "a.sqlite"), rows,
                 ["--wal"] if kind in ("lightweight", "small-wal") else [])
    return (InPipeline if kind.startswith("small") else crashes.Subject)(store, ground.MODELS, ground.DESTINATION, 1, 1 << 20)


def made(model, store, rows, more):
    os.makedirs(os.path.dirname(store))
    subprocess.run([ground.fixtures(), "make-store", "--model", model, "--output", store, "--rows", str(rows),
                    "--external", "0.2", *more], check=True, capture_output=True)
    return store


class Chained(crashes.Subject):
    def command(self, store, output=None, workers=None, shard_bytes=None):
        return super().command(store, output, workers, shard_bytes) + ["--chain", "progressive"]


class InPipeline(crashes.Subject):
    """The one store of a pipeline, whose state has the place of a run directory."""

    def command(self, store, output=None, workers=None, shard_bytes=None):
        folder = os.path.dirname(os.path.dirname(self.store))
        with open(os.path.join(folder, "pipeline.yaml"), "w") as file:
            json.dump({"stores": {"roots": [os.path.dirname(store)], "include": os.path.basename(store)},
                       "models": self.models, "destination": self.to}, file)
        return [ground.godwit(), "run", folder, "--state", store + ".godwit", "--json"]


class Recording:
    """One undisturbed run of a subject, and the states that power cuts leave of it."""

    def __init__(self, kind, folder, rows):
        self.kind, self.subject = kind, subject_of(kind, folder, rows)
        self.root = os.path.join(folder, "here")
        self.store = ground.copy_store(self.subject.store, self.root)
        self.command = self.subject.command(self.store)
        old = judge.digest(self.store)
        reader, done = disktrace.record(self.command, self.root, os.path.join(folder, "trace"), tool.environment())
        if done.returncode:
            sys.exit(f"{kind}: the recorded run ended with {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}")
        self.before, self.operations, self.real = reader.before, reader.operations, reader.real
        self.facts = crashes.Facts(judge.version_hashes(self.subject.store), old, judge.digest(self.store), 0)

    def moments(self, early):
        """Numbers of operations done: each of the commit, and some before it."""
        first = next(n for n, op in enumerate(self.operations) if os.path.basename(op.path).startswith(".journal.json"))
        flushes = [n + 1 for n, op in enumerate(self.operations[:first]) if op.kind.startswith("sync")]
        sampled = flushes[::max(1, len(flushes) // early)] if early else []
        return sampled + list(range(first, len(self.operations) + 1))

    def pending(self, count):
        """What is not flushed after `count` operations: {inode: numbers of its writes}, [numbers of names]."""
        writes, names = collections.defaultdict(list), []
        for number, op in enumerate(self.operations[:count]):
            if os.path.basename(op.path) in IDLE or op.path.endswith("-shm"):
                continue
            if op.kind in ("write", "truncate"):
                writes[op.inode].append(number)
            elif op.kind in ("name", "unname"):
                names.append(number)
            elif op.kind == "sync":
                writes.pop(op.inode, None)
            else:
                # A rename from one folder to another is one step of the file system's journal.
                names = [n for n in names if op.folder not in folders_of(self.operations[n])]
        return writes, names

    def choices(self, count, rng):
        """Each a dictionary {number of an operation: "missing", or how many of its bytes are there}."""
        writes, names = self.pending(count)
        parts = [[{}, {n: "missing"}] for n in names]
        for numbers in writes.values():
            torn = {n: "missing" for n in numbers if rng.random() < 0.5}
            last = self.operations[numbers[-1]]
            if last.kind == "write" and len(last.data) > 1:
                torn[numbers[-1]] = (len(last.data) // 2) // 512 * 512 or len(last.data) // 2
            parts.append([{}, {n: "missing" for n in numbers}, torn, {n: "zero" for n in numbers}])
        if len(parts) <= MOST_COMBINED:
            combined = itertools.product(*parts)
        else:
            whole = [p[0] for p in parts]
            combined = [whole, [p[1] for p in parts]]
            combined += [[*whole[:n], way, *whole[n + 1:]] for n, part in enumerate(parts) for way in part[1:]]
            combined += [[rng.choice(p) for p in parts] for _ in range(RANDOM_STATES)]
        for ways in combined:
            yield {number: how for way in ways for number, how in way.items()}

    def state(self, count, lost):
        disk = self.before.copy()
        for number, op in enumerate(self.operations[:count]):
            how = lost.get(number)
            if how == "missing":
                continue
            if how == "zero" and op.kind == "write":
                op = dataclasses.replace(op, data=bytes(len(op.data)))
            elif isinstance(how, int):
                op = dataclasses.replace(op, data=op.data[:how])
            disk.apply(op)
        return disk

    def states(self, early, seed, most):
        """Every state once, or `most` of them: (moment, what was lost, disk)."""
        rng, seen = random.Random(seed), set()
        cases = [(count, lost) for count in self.moments(early) for lost in self.choices(count, rng)]
        if most:
            rng.shuffle(cases)
        for count, lost in cases:
            if most and len(seen) == most:
                return
            disk, digest = self.state(count, lost), hashlib.sha256()
            for path, inode in sorted(disk.tree().items()):
                if os.path.basename(path) not in IDLE:
                    digest.update(f"{path}\0{inode}\0".encode() + bytes(disk.files.get(inode, b"")))
            if digest.digest() not in seen:
                seen.add(digest.digest())
                yield count, lost, disk

    def lay_out(self, disk):
        """Makes the folder what the disk says, with the journal's inode numbers and times as they are now."""
        shutil.rmtree(self.root)
        os.makedirs(self.root)
        made = {}
        for path, inode in sorted(disk.tree().items()):
            place = os.path.join(self.root, path)
            if inode in disk.folders:
                os.mkdir(place)
                os.chmod(place, disk.modes[inode] | 0o700)
            elif inode in made:
                os.link(made[inode], place)
            else:
                made[inode] = place
                with open(place, "wb") as file:
                    file.write(disk.files[inode])
                os.chmod(place, disk.modes[inode])
                if inode in disk.times:
                    os.utime(place, ns=(disk.times[inode],) * 2)
        self.renumber(made)

    def renumber(self, made):
        journal = next(iter(glob.glob(self.store + ".godwit/**/journal.json", recursive=True)), "")
        try:
            with open(journal) as file:
                value = json.load(file)
        except (OSError, ValueError):
            return

        def walk(node):
            for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
                walk(child)
            if isinstance(node, dict) and "inode" in node:
                known = self.real.get(node["inode"], ())
                place = next((made[inode] for inode in known if inode in made), None)
                if place is None:
                    node["inode"] += 1 << 48    # a file that is gone: no other has its number
                    return
                node["inode"] = os.stat(place).st_ino
                if "modificationSeconds" in node:
                    moment = node["modificationSeconds"] * 10**9 + node["modificationNanoseconds"]
                    os.utime(place, ns=(moment, moment))
        walk(value)
        value.pop("digest", None)
        with open(journal, "w") as file:
            json.dump(value, file)

    def recover(self, count, lost, disk):
        """[problem] of one state."""
        self.lay_out(disk)
        problems, _ = crashes.whole(self.store, self.facts)
        problems = [f"before the rerun: {p}" for p in problems]
        run = tool.run(self.command, timeout=120)
        if run.exit != 0:
            problems.append(f"the rerun: {run.why()}")
        run.lines = [line for line in run.lines if line.get("event") != "summary"]
        problems += tool.contract_problems(run)
        problems += [f"after the rerun: {p}"
                     for p in crashes.check_end(self.subject, self.store, None, self.facts, None)]
        where = self.operations[count - 1] if count else None
        lost_words = ", ".join(f"{self.operations[n].kind} {os.path.basename(self.operations[n].path)} {how}"
                               for n, how in list(lost.items())[:6])
        return [f"{self.kind}, after {where.kind} {os.path.basename(where.path)} ({count}), lost: {lost_words or 'nothing'}: {p}"
                for p in problems]


def folders_of(op):
    return (op.folder, op.old[0]) if op.old else (op.folder,)


def tried(kind, rows, early, most, seed):
    """(kind, operations recorded, states tried, [problem])."""
    with ground.workspace("powercut") as folder:
        folder = os.path.realpath(folder)
        recording, states, problems = Recording(kind, folder, rows), 0, []
        for state in recording.states(early, seed, most):
            problems += recording.recover(*state)
            states += 1
        return kind, len(recording.operations), states, problems


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/powercut", description=__doc__)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--early", type=int, default=10, help="moments before the commit")
    parser.add_argument("--most", type=int, help="states of each kind, drawn at random; default all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--short", action="store_true", help="12 states each of a lightweight and a mapped migration")
    options = parser.parse_args(arguments)
    if subprocess.run("strace -o /dev/null true", shell=True, capture_output=True).returncode:
        ground.skip("power cuts", "strace is not installed or may not trace here")
    ground.skip_unless_shared("power cuts")
    if options.short:
        options.kinds, options.most = ("lightweight", "mapped"), options.most or 12
    os.environ["GODWIT"], os.environ["GODWIT_FIXTURES"] = ground.godwit(), ground.fixtures()
    began, problems, total = time.monotonic(), [], 0
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        futures = [pool.submit(tried, k, options.rows, options.early, options.most, options.seed) for k in options.kinds]
        for future in concurrent.futures.as_completed(futures):
            kind, operations, states, found = future.result()
            print(f"{kind}: {operations} operations, {states} states, {len(found)} problems", flush=True)
            problems, total = problems + found, total + states
    for problem in problems[:40]:
        print(problem)
    print(f"{total} states after power cuts recovered, {len(problems)} problems, {time.monotonic() - began:.0f} s")
    return 1 if problems or not total else 0


if __name__ == "__main__":
    sys.exit(main())
