"""Applications that use a store while it is migrated in place, again and again.

Each application is a process of its own with Python's sqlite3. It writes one token into all of its
rows in each transaction, and logs the token before and after COMMIT. After a run every application's
last committed token must be in the store, or the run must have said `pending` and changed nothing.

Half of the runs are killed once or twice at one of their steps, while the applications go on.
"""
import argparse
import collections
import glob
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time

from . import ground, tool

MODELS = os.path.join(ground.ROOT, "Fixtures", "Recipes.xcdatamodeld")
MODES = ("wal", "delete", "truncate", "persist")
PENDING = {"in-use", "changed"}
# A run in place has 58 steps, and 64 with external data. The commit is after step 40.
STEPS, COMMIT = 66, 40
TWO_STORES = "Decide which of the two is the store"
# Only the destination's model has it.
NEW_COLUMN = "ZSUMMARY"


class Application:
    """One process. `kind` is the name of the method that it runs."""

    KINDS = ("opening", "writing", "idle", "idle_after_reading", "waiting", "transaction", "reading",
             "burst", "killed")

    def __init__(self, kind, store, number, rows, seed, log, stop):
        self.kind, self.store, self.number, self.rows = kind, store, number, rows
        self.rng, self.log, self.stop, self.turn = random.Random(seed), log, stop, 0
        # Some leave before the run is at its end, so that it may migrate.
        self.leaves = time.monotonic() + self.rng.choice((self.rng.uniform(0, 1), 1e6))

    def run(self):
        self.file = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        getattr(self, self.kind)()
        os._exit(0)

    def connect(self, timeout=None):
        timeout = self.rng.choice((0, 0.05, 5)) if timeout is None else timeout
        return sqlite3.connect(self.store, timeout=timeout, isolation_level=None)

    def pause(self, most):
        self.stop.wait(self.rng.uniform(0, most))

    def is_gone(self):
        return self.stop.is_set() or time.monotonic() > self.leaves

    def stay(self):
        self.stop.wait(min(self.leaves - time.monotonic(), 600))

    def say(self, word, token):
        os.write(self.file, f"{word} {token}\n".encode())

    def begin(self, db):
        """Writes a new token into every row, and leaves the transaction open."""
        self.turn += 1
        token = f"{self.number}.{self.turn}."
        db.execute("BEGIN IMMEDIATE")
        for row in self.rows:
            filler = "x" * self.rng.choice((0, 20, 700, 5000))
            db.execute("UPDATE ZRECIPE SET ZNAME = ? WHERE Z_PK = ?", (token + filler, row))
        return token

    def commit(self, db, token):
        self.say("begun", token)
        db.execute("COMMIT")
        self.say("committed", token)

    def write(self, db):
        self.commit(db, self.begin(db))

    def attempt(self, work, timeout=None):
        """A connection of its own for a piece of work; what SQLite refuses was not committed."""
        try:
            db = self.connect(timeout)
        except sqlite3.Error:
            return
        try:
            work(db)
        except sqlite3.Error:
            pass
        try:
            db.close()
        except sqlite3.Error:
            pass

    def opening(self):
        def work(db):
            if self.rng.random() < 0.5:
                db.execute("SELECT count(*) FROM ZRECIPE").fetchone()
            if self.rng.random() < 0.3:
                self.write(db)
        while not self.is_gone():
            self.attempt(work)
            self.pause(self.rng.choice((0, 0.002, 0.2)))

    def writing(self):
        def work(db):
            for _ in range(self.rng.randrange(1, 40)):
                if self.is_gone():
                    return
                self.write(db)
                self.pause(0.03)
        while not self.is_gone():
            self.attempt(work)
            self.pause(0.3)

    def idle(self):
        def work(db):
            self.stay()
            self.write(db)
        self.pause(0.5)
        self.attempt(work)

    def idle_after_reading(self):
        def work(db):
            db.execute("SELECT count(*) FROM ZRECIPE").fetchone()
            self.stay()
            self.write(db)
        self.pause(0.5)
        self.attempt(work)

    def waiting(self):
        while not self.is_gone():
            self.pause(0.8)
            self.attempt(self.write, timeout=20)

    def transaction(self):
        def work(db):
            token = self.begin(db)
            self.pause(0.6)
            if self.rng.random() < 0.3:
                db.execute("ROLLBACK")
            else:
                self.commit(db, token)
        while not self.is_gone():
            self.attempt(work)
            self.pause(0.6)

    def reading(self):
        def work(db):
            db.execute("BEGIN")
            db.execute("SELECT sum(length(ZNAME)) FROM ZRECIPE").fetchone()
            self.pause(0.6)
            db.execute("COMMIT")
        while not self.is_gone():
            self.attempt(work)
            self.pause(0.4)

    def burst(self):
        """Done before the run is, as often as not: such a run may migrate."""
        end = time.monotonic() + self.rng.uniform(0, 0.6)
        while time.monotonic() < end:
            self.attempt(self.write)
            self.pause(0.03)

    def killed(self):
        """Dies with a WAL that nobody checkpoints, or with a hot journal."""
        self.pause(0.5)
        db = self.connect(5)
        try:
            db.execute("PRAGMA wal_autocheckpoint = 0")
            for _ in range(self.rng.randrange(4)):
                self.write(db)
            if self.rng.random() < 0.5:
                db.execute("PRAGMA cache_size = 1")
                self.begin(db)
        except sqlite3.Error:
            pass
        os._exit(0)


def ask(path, sql):
    db = sqlite3.connect(path)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def look(path, groups):
    """Problems of a store's file, whether it is the new one, and the token of each group of rows."""
    try:
        check = ask(path, "PRAGMA integrity_check(3)")
        if check != [("ok",)]:
            return [f"{os.path.basename(path)} is corrupt: {check}"], None, {}
        is_new = NEW_COLUMN in {r[1] for r in ask(path, "PRAGMA table_info(ZRECIPE)")}
        names = dict(ask(path, "SELECT Z_PK, ZNAME FROM ZRECIPE"))
    except sqlite3.Error as error:
        return [f"{os.path.basename(path)} cannot be read: {error}"], None, {}
    problems, tokens = [], {}
    for number, rows in groups.items():
        found = {".".join(str(names.get(row)).split(".")[:2]) for row in rows}
        if len(found) != 1 and any(f.startswith(f"{number}.") for f in found):
            problems.append(f"{os.path.basename(path)} has a part of a transaction: {sorted(found)[:4]}")
        tokens[number] = min(found)
    return problems, is_new, tokens


def allowed(log, number):
    """The last committed token, and those whose COMMIT was under way when it failed; None at first."""
    found = [None]
    if os.path.exists(log):
        with open(log) as file:
            for word, token in (line.split() for line in file):
                token = token.rstrip(".")
                found = [token] if word == "committed" else found + [token]
    return found


def is_kept(token, log, number):
    good = allowed(log, number)
    return token in good or (None in good and not token.startswith(f"{number}."))


def backups(store):
    return [p for p in sorted(glob.glob(glob.escape(store) + ".godwit-backup-*"))
            if not p.endswith(("-wal", "-shm", "-journal"))]


def migrate(store, kill=None):
    """With the number of a step: the coordinator is killed after it."""
    env = tool.environment(**({"GODWIT_KILL_AFTER_STEP": kill} if kill else {}))
    return tool.run(tool.migrate_command(store, [MODELS], workers=1), timeout=120, env=env)


def both(store, run, groups, log):
    """Problems where a person has to decide: each transaction is in one of the two files that are named."""
    other = next((p for p in run.why(2000).replace(",", " ").split() if p.endswith(("-clone", "assembled.sqlite"))), None)
    if other is None or not os.path.exists(other):
        return [f"no second store is named: {run.why(2000)}"]
    (problems, _, tokens), (more, _, others) = look(store, groups), look(other, groups)
    lost = [n for n in groups if not is_kept(tokens.get(n, ""), log[n], n) and not is_kept(others.get(n, ""), log[n], n)]
    return problems + more + [f"lost by both: {n}" for n in lost]


def trial(base, folder, seed):
    """One run in place among applications: (verdict, reason, problems, transactions)."""
    rng = random.Random(seed)
    store = ground.copy_store(base, os.path.join(folder, "store"))
    mode = rng.choice(MODES)
    ask(store, f"PRAGMA journal_mode = {mode}")
    keys = [r[0] for r in ask(store, "SELECT Z_PK FROM ZRECIPE ORDER BY Z_PK")]
    kinds = [rng.choice(Application.KINDS) for _ in range(rng.choice((1, 1, 2, 3)))]
    kills = [rng.randrange(rng.choice((1, COMMIT)), STEPS) for _ in range(rng.choice((0, 0, 1, 2)))]
    groups = {n + 1: keys[n::len(kinds)][:6] for n in range(len(kinds))}
    log = {n: os.path.join(folder, f"log-{n}") for n in groups}
    stop = multiprocessing.Event()
    people = [Application(kind, store, n, groups[n], f"{seed} {n}", log[n], stop)
              for n, kind in zip(groups, kinds)]
    processes = [multiprocessing.Process(target=p.run) for p in people]
    interrupted = False
    for process in processes:
        process.start()
    try:
        time.sleep(rng.uniform(0, 0.3))
        for step in [*kills, None]:
            run = migrate(store, step)
            if run.exit != -signal.SIGKILL:
                break
            interrupted = True
            time.sleep(rng.uniform(0, 0.1))
    finally:
        stop.set()
        for process in processes:
            process.join(40)
            if process.is_alive():
                process.kill()
    if interrupted and run.exit == 75:
        # What is begun may be at its end only now.
        run = migrate(store)
    problems = tool.contract_problems(run)
    reason = run.reasons[0].get("reason") if run.reasons else None
    kept = backups(store)
    if run.exit == 0:
        named = (run.result or {}).get("backup")
        # Killed after the commit's end, the run has nothing to do any more.
        if kept != [named] and not (interrupted and run.verdict == "same-model"):
            problems.append(f"the result names the backup {named}, and there are {kept}")
    elif interrupted and run.exit == 78 and TWO_STORES in run.why(2000):
        return "two stores", reason, problems + both(store, run, groups, log), 0
    elif run.exit == 75 and run.verdict == "pending" and reason in PENDING:
        if kept:
            problems.append(f"pending, and a backup was left: {kept}")
    else:
        problems.append(f"a sound store: {run.why()}")
    found, is_new, tokens = look(store, groups)
    problems += found
    if is_new is not None and is_new != (run.exit == 0):
        problems.append(f"exit {run.exit}, and the store is {'new' if is_new else 'old'}")
    lost = [n for n in tokens if not is_kept(tokens[n], log[n], n)]
    problems += [f"lost: {tokens[n]} is in the store, and {allowed(log[n], n)[0]} was committed" for n in lost]
    for backup in kept:
        found, is_new, _ = look(backup, groups)
        problems += found + (["the backup has the new schema"] if is_new else [])
    if run.exit == 75 and not problems:
        again = migrate(store)
        found, is_new, after = look(store, groups)
        problems += found
        if again.exit or not is_new:
            problems.append(f"with nobody there, the same command does not end with 0: {again.why()}")
        if after != tokens:
            problems.append(f"the second run lost transactions: {tokens}, then {after}")
    if problems:
        problems.insert(0, f"seed {seed}, {mode}, {'+'.join(kinds)}, killed at {kills}")
    count = sum(open(p).read().count("committed") for p in log.values() if os.path.exists(p))
    return run.verdict, reason, problems, count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--short", action="store_true", help="as many runs as fit into 20 s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave the files of runs with problems")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="writers-", dir=os.environ.get("GODWIT_TRIAL_FOLDER"))
    bases = [ground.make_fleet(os.path.join(folder, f"base-{rows}"), 1, rows, options.seed, "1.0",
                               external=rows == 300)[0] for rows in (60, 300, 2500)]
    ends, transactions, bad, end = collections.Counter(), 0, 0, time.monotonic() + 20
    for number in range(options.runs):
        if options.short and time.monotonic() > end:
            break
        place = os.path.join(folder, f"run-{number}")
        os.mkdir(place)
        verdict, reason, problems, count = trial(
            bases[number % len(bases)], place, options.seed * 1_000_000 + number)
        ends[f"{verdict} ({reason})" if verdict == "pending" else str(verdict)] += 1
        transactions += count
        if problems:
            bad += 1
            print("\n    ".join(problems), flush=True)
        if not (problems and options.keep):
            shutil.rmtree(place)
    if not bad:
        shutil.rmtree(folder)
    counts = ", ".join(f"{n} {name}" for name, n in sorted(ends.items()))
    print(f"writers: {sum(ends.values())} runs, seed {options.seed}: {counts}; {transactions} transactions "
          f"committed by applications; {bad} runs with problems" + (f", see {folder}" if bad else ""))
    # Runs of one kind only would show nothing of the other.
    sys.exit(1 if bad or not sum(ends.values()) or not transactions else 0)


if __name__ == "__main__":
    main()
