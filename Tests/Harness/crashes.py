"""kill -9 at random moments and after each durable step, then the same command again."""
import collections
import dataclasses
import filecmp
import json
import os
import random
import signal
import sys
import time

from . import ground, judge, ledger, processes, tool

TARGETS = ("coordinator", "worker", "both", "all")


@dataclasses.dataclass
class Subject:
    """One store to migrate again and again, and how."""
    store: str
    models: str
    to: str
    workers: int
    shard_bytes: int
    mapping: str | None = None

    @classmethod
    def generated(cls, folder, rows, seed, wal=False, workers=2, shard_bytes=64 << 10, mapped=None):
        where = os.path.join(folder, f"fleet-{rows}-{seed}{'-wal' if wal else ''}")
        if mapped:
            store = ledger.make_store(where, rows, seed, wal)
            return cls(store, ledger.MODELS, ledger.NAME, workers, shard_bytes, mapped)
        # With external data files: they, too, must be whole at every moment.
        store = ground.make_fleet(where, 1, rows, seed, wal=wal, external=True)[0]
        return cls(store, ground.MODELS, ground.DESTINATION, workers, shard_bytes)

    def command(self, store, output=None, workers=None, shard_bytes=None):
        return tool.migrate_command(store, [self.models], self.to, output, workers or self.workers,
                                    shard_bytes or self.shard_bytes,
                                    ["--mapping", self.mapping] if self.mapping else [])

    def reference(self, folder):
        """(digest, seconds) of an undisturbed run, judged in full."""
        store = ground.copy_store(self.store, folder)
        out = os.path.join(folder, "out", os.path.basename(store))
        os.makedirs(os.path.dirname(out))
        run = tool.run(self.command(store, out))
        if run.exit != 0 or run.verdict != "migrated":
            sys.exit(f"The undisturbed run did not migrate: {run.why(2000)}\n{run.stderr[-2000:]}")
        if self.mapping:
            found = ledger.problems(store, out, self.mapping)
            if found:
                sys.exit(f"The undisturbed run's store is wrong: {found}")
            return judge.digest(out), run.seconds
        version = os.path.join(self.models, self.to + ".xcdatamodel")
        # The oracle takes the store's own model; the judge of the repository the first version.
        first = os.path.splitext(os.path.basename(self.models))[0] + ".xcdatamodel"
        compared = judge.compare(store, out, "cache:" + store if judge.HAS_ORACLE else os.path.join(self.models, first),
                                 version)
        if compared["total"] != 0:
            sys.exit(f"The undisturbed run's store is wrong: {compared}")
        return judge.digest(out), run.seconds


@dataclasses.dataclass
class Facts:
    """What the undisturbed run and the untouched source say."""
    source_hashes: dict
    source_digest: str
    destination_digest: str
    seconds: float

# Stages that look at the assembled file, which every attempt makes anew.
AGAIN = ("verify", "soundness")


def facts_of(subject, folder):
    digest, seconds = subject.reference(folder)
    return Facts(judge.version_hashes(subject.store), judge.digest(subject.store), digest, seconds)


# -- the run directory, from outside


def finished_units(directory):
    """How often each (stage, unit) was reported finished.

    Not of verify: it looks at the assembled file, which a rerun makes anew.
    """
    return collections.Counter((event.get("stage"), event.get("unit")) for event in finish_events(directory)
                               if event.get("stage") not in AGAIN)


def finish_events(directory):
    """What the run directory's log says of finished units."""
    try:
        with open(os.path.join(directory, "events.jsonl"), "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:      # the last line of a killed process may be torn
            continue
        if isinstance(event, dict) and event.get("event") == "unit-finished":
            yield event


def checkpoints(directory):
    """{name: identity} of the checkpoints in place; a redone one has another inode or time."""
    found = {}
    for base, _, names in os.walk(directory):
        for name in names:
            if name.endswith(".ckpt"):
                path = os.path.join(base, name)
                info = os.stat(path)
                found[os.path.relpath(path, directory)] = (info.st_ino, info.st_mtime_ns, info.st_size)
    return found


def redone(before, after):
    """Checkpoints that were whole at the kill and were written again; those of AGAIN always are."""
    return sorted(n for n in before if n in after and after[n] != before[n] and n.split(os.sep)[0] not in AGAIN)


def moment(directory):
    """Where a kill struck, for the tally."""
    if not os.path.isdir(directory):
        return "before the run directory"
    if os.path.exists(os.path.join(directory, "journal.json")):
        return "commit"
    stages = {name.split(os.sep)[0] for name in checkpoints(directory)}
    for stage in ("soundness", "verify", "audit", "validate", "link", "copy", "rows"):
        if stage in stages:
            return f"after the first checkpoint of {stage}"
    return "before the first checkpoint"


# -- what must hold


def whole(store, facts):
    """Problems of what lies at a store's path; it must be one whole store, old or new."""
    if not os.path.exists(store):
        return ["there is no store at the store's path"], None
    try:
        with judge.Store(store) as opened:
            rows = opened.db.execute("PRAGMA quick_check").fetchall()
            old = dict(opened.hashes) == facts.source_hashes
        if rows != [("ok",)]:
            return [f"quick_check of the store at the path: {rows[0][0]}"], None
        digest = judge.digest(store)
    except judge.UNREADABLE as error:
        return [f"the store at the path cannot be read: {error}"], None
    wanted = facts.source_digest if old else facts.destination_digest
    word = "old" if old else "new"
    return ([] if digest == wanted else [f"the {word} store at the path is not whole"]), word


def check_between(store, out, directory, facts, before, ignoring):
    """After a kill, before the rerun."""
    changes = judge.changes(before, judge.state(store), ignoring)
    if out:
        problems = [f"source touched: {c}" for c in changes]
        return problems + (whole(out, facts)[0] if os.path.exists(out) else [])
    problems, word = whole(store, facts)
    if word == "old" and not os.path.exists(os.path.join(directory, "journal.json")):
        problems += [f"source touched before the swap: {c}" for c in changes]
    return problems


def check_end(subject, store, out, facts, before):
    """After the last rerun."""
    result, base = out or store, os.path.basename(store)
    stem = os.path.basename(ground.support_folder(store))
    problems, word = whole(result, facts)
    if word == "old":
        problems.append("the run ended well, and the store is the old one")
    beside = os.listdir(os.path.dirname(result))
    allowed, mains = {base, base + ".godwit", stem}, backups_of(result)
    for main in mains:
        allowed |= {os.path.basename(main) + suffix for suffix in ("", "-wal", "-journal")}
        allowed.add(os.path.basename(ground.support_folder(main)))
    problems += [f"left behind: {n}" for n in sorted(set(beside) - allowed)]
    if out:
        problems += [f"a backup beside the output: {m}" for m in mains]
        return problems + [f"source touched: {c}" for c in judge.changes(before, judge.state(store))]
    return problems + check_backup(subject, mains, facts)


def backups_of(store):
    """Main files of the backups beside a store."""
    folder, start = os.path.dirname(store), os.path.basename(store) + ".godwit-backup-"
    return [os.path.join(folder, n) for n in sorted(os.listdir(folder))
            if n.startswith(start) and not n.endswith(("-wal", "-shm", "-journal"))]


def check_backup(subject, mains, facts):
    """The source, kept: the same bytes, and readable as the same store."""
    if len(mains) != 1:
        return [f"{len(mains)} backups of the source, expected one"]
    problems, main = [], mains[0]
    for suffix in ("", "-wal"):
        original, kept = subject.store + suffix, main + suffix
        if not os.path.exists(original) or not os.path.getsize(original):
            continue        # an empty log holds nothing
        if not os.path.exists(kept) or not filecmp.cmp(kept, original, shallow=False):
            problems.append(f"the backup's {suffix or 'main file'} is not the source's, byte for byte")
    try:
        if judge.digest(main) != facts.source_digest:
            problems.append("the backup is not the source: another logical digest")
    except judge.UNREADABLE as error:
        problems.append(f"the backup cannot be read: {error}")
    return problems


# -- one trial


def launch(command, folder, env=None):
    """Output goes to files: a worker that outlives its coordinator would hold a pipe open."""
    with open(os.path.join(folder, "stdout"), "wb") as out, open(os.path.join(folder, "stderr"), "wb") as err:
        return tool.start(command, env=env, stdout=out, stderr=err)


def ended(process, folder, began, timeout=120):
    """Waits for the coordinator, and sees that nobody is left behind."""
    hung = False
    deadline = began + timeout
    held = {}
    while process.poll() is None:
        for pid in processes.descendants(process.pid):
            if pid not in held:
                found = processes.handles([pid])
                held |= {h.pid: h for h in found}
        if time.monotonic() > deadline:
            hung = True
            tool.end_group(process)
        time.sleep(0.02)
    left = processes.wait_gone(list(held.values()), 10)
    for handle in left:
        handle.send(signal.SIGKILL)
    for handle in held.values():
        handle.close()
    with open(os.path.join(folder, "stdout"), "rb") as out, open(os.path.join(folder, "stderr"), "rb") as err:
        run = tool.parsed(process.returncode, out.read(), err.read(), time.monotonic() - began, hung)
    return run, [f"{len(left)} processes were alive 10 s after their coordinator"] if left else []


def strike(process, target, rng):
    """Kills; gives (how many were hit, the handles of all that were seen)."""
    seen = processes.handles(processes.descendants(process.pid))
    chosen = list(seen) if target == "all" else [rng.choice(seen)] if target != "coordinator" and seen else []
    hit = 0
    if target != "worker":
        coordinator = processes.handles([process.pid])
        hit += sum(h.send(signal.SIGTERM if target == "term" else signal.SIGKILL)
                   for h in coordinator if process.poll() is None)
        for handle in coordinator:
            handle.close()
    if target != "term":
        hit += sum(h.send(signal.SIGKILL) for h in chosen)
    return hit, seen


def trial(subject, facts, replace, target, seed, folder, step=None, kills=1):
    """One store, `kills` kills (or one after a durable step), reruns until it ends."""
    rng = random.Random(seed)
    store = ground.copy_store(subject.store, os.path.join(folder, "store"))
    out = None if replace else os.path.join(folder, "out", os.path.basename(store))
    if out:
        os.makedirs(os.path.dirname(out))
    directory = (out or store) + ".godwit"
    ignoring = () if out else {os.path.basename(directory)}
    before, command = judge.state(store), subject.command(store, out)
    record = {"mode": "replace" if replace else "output", "target": f"step {step}" if step else target,
              "seed": seed, "kills": 0, "moments": [], "problems": [], "redone": 0, "finished undisturbed": False}
    problems = record["problems"]
    try:
        # The workers count their own steps and die as well: the coordinator may have to give up,
        # and is disturbed again until it dies at a step of its own, those of the commit included.
        attempts = 8 if step else kills
        coordinator_died = False
        for attempt in range(attempts + 6):
            disturbed = attempt < attempts and not (step and coordinator_died)
            earlier, counted = checkpoints(directory), finished_units(directory)
            began = time.monotonic()
            env = tool.environment(GODWIT_KILL_AFTER_STEP=step) if step and disturbed else None
            process = launch(command, folder, env)
            seen, hit = [], 0
            if disturbed and not step:
                time.sleep(rng.uniform(0, facts.seconds * 1.05))
                if process.poll() is None:
                    hit, seen = strike(process, target, rng)
            run, orphans = ended(process, folder, began)
            left = processes.wait_gone(seen, 10)
            if left:
                orphans.append(f"{len(left)} workers were alive 10 s after the kill")
                for handle in left:
                    handle.send(signal.SIGKILL)
            for handle in seen:
                handle.close()
            problems += orphans
            if step and disturbed:
                hit = 1 if run.exit != 0 else 0
                coordinator_died = run.exit == -signal.SIGKILL
                record["finished undisturbed"] = run.exit == 0 and attempt == 0
            again = set(redone(earlier, checkpoints(directory)))
            now = finished_units(directory)
            again_by_events = {u for u, n in counted.items() if n and now[u] > n}
            number = max(len(again), len(again_by_events))
            record["redone"] += number
            if earlier and number > subject.workers:
                problems.append(f"{number} finished shards were done again, and there are {subject.workers} workers")
            if hit:
                record["kills"] += target != "term"
                record["moments"].append(moment(directory))
            problems += check_between(store, out, directory, facts, before, ignoring)
            if run.hung:
                problems.append(f"hung after {run.seconds:.0f} s")
                break
            # SIGTERM may come before the process has said, or heard, anything: the system ends it, or it
            # ends with 75, and nothing was under way.
            early = target == "term" and bool(hit) and run.exit in (-signal.SIGTERM, 75) and not run.lines
            if run.exit >= 0 and not early:
                problems += tool.contract_problems(run)
            if run.exit == 0:
                break
            # The kill fell after the very last step: the output is there, the run directory is gone,
            # and an output is never overwritten.
            if attempt and out and run.exit == 73 and os.path.exists(out) and not os.path.isdir(directory):
                break
            killed = (run.exit == -signal.SIGKILL or early) and bool(hit)
            # A run that lost workers, or was asked to stop, may end early, and must say so with 75.
            if not killed and not (hit and run.exit == 75):
                problems.append(f"attempt {attempt + 1}{' (disturbed)' if hit else ''}: {run.why()}")
                if not hit:
                    break
            if target == "term" and hit and run.seconds > facts.seconds * 1.05 + 10:
                problems.append("SIGTERM: took more than 10 s to stop")
        else:
            problems.append("did not end")
        problems += check_end(subject, store, out, facts, before)
    except Exception as error:
        problems.append(f"the trial itself failed: {error!r}")
    return record
