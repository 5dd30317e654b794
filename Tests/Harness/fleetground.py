"""A seeded fleet of Notes stores of five versions, some of them damaged, in use, foreign, or on volumes that
cannot be written to."""
import dataclasses
import multiprocessing
import os
import random
import shutil
import sqlite3
import subprocess
import time

from . import ground

NOTES = os.path.join(ground.ROOT, "Pipelines", "notes-progressive", "Notes.xcdatamodeld")
VERSIONS = ("Notes", "Notes 2", "Notes 3", "Notes 4", "Notes 5")
LAST = VERSIONS[-1]


def model(version):
    """The model of a version, as the oracle reads it."""
    return os.path.join(NOTES, f"{version}.xcdatamodel")


@dataclasses.dataclass(eq=False)
class Store:
    """A store of the fleet, and what it was made of."""
    path: str
    kind: str                   # sound, damaged, locked, reading, writing, read-only, full or foreign
    version: str | None = None
    template: str | None = None
    note: str = ""


def make_templates(folder, seed, rows):
    """{version: [store]}: small and larger, with a WAL, with external data."""
    os.makedirs(folder)
    found = {}
    for number, version in enumerate(VERSIONS):
        for size, extra in ((3, []), (rows, []), (rows, ["--wal"]), (rows * 4, ["--external", "0.5"])):
            path = os.path.join(folder, f"{number + 1}-{len(found.get(version, []))}", "Notes.sqlite")
            os.makedirs(os.path.dirname(path))
            command = [ground.fixtures(), "make-store", "--model", model(version), "--output", path, "--rows",
                       str(size), "--seed", str(seed * 100 + number), *extra]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode:
                raise SystemExit(f"make-store failed: {done.stdout.decode(errors='replace')}")
            found.setdefault(version, []).append(path)
    return found


def booked_once(place, count):
    """[problem]: a finished fleet's ledger has each of its stores migrated once and knows every backup that there is,
    and nothing of the work is left in the state folder but what a job that goes on with the run has printed."""
    found = sorted(os.path.join(base, name) for base, _, names in os.walk(os.path.join(place, "stores"))
                   for name in names if ".godwit-backup-" in name and name.endswith(".sqlite"))
    ledger = sqlite3.connect(f"file:{place}/ledger.sqlite?mode=ro", uri=True)
    migrated = [key for (key,) in ledger.execute("SELECT store FROM attempts WHERE verdict = 'migrated' ORDER BY 1")]
    known = [path for (path,) in ledger.execute("SELECT path FROM backups ORDER BY 1")]
    ledger.close()
    problems = []
    if len(found) != count or known != found:
        problems.append(f"{len(found)} backups of {count} stores, and {len(known)} in the ledger; "
                        f"in one alone: {sorted(set(found) ^ set(known))[:5]}")
    if len(migrated) != count or len(set(migrated)) != count:
        problems.append(f"the ledger has {len(set(migrated))} of {count} stores migrated, {len(migrated)} times")
    for folder in ("stores", "cluster"):
        where = os.path.join(place, "state", folder)
        left = [os.path.join(base, n) for base, folders, names in os.walk(where) for n in folders + names
                if n != "follower.log"]
        if left:
            problems.append(f"left behind: {left[:8]}")
    return problems


def copy(template, path):
    """A store with what belongs to it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    shutil.copyfile(template, path)
    for suffix in ("-wal", "-journal"):
        if os.path.exists(template + suffix):
            shutil.copyfile(template + suffix, path + suffix)
    support = os.path.join(os.path.dirname(template), ".Notes_SUPPORT")
    if os.path.isdir(support):
        name = os.path.basename(path).removesuffix(".sqlite")
        shutil.copytree(support, os.path.join(os.path.dirname(path), f".{name}_SUPPORT"))


class Volumes:
    """Volumes of our own, which only root can have: one that is full, one that is read-only."""

    def __init__(self):
        self.mounted = []

    def mount(self, folder, *options):
        os.makedirs(folder, exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "godwit-trial", folder]
        if subprocess.run(command, stderr=subprocess.DEVNULL).returncode:
            return False
        self.mounted.append(folder)
        return True

    def close(self):
        for folder in self.mounted:
            subprocess.run(["umount", "--lazy", folder], check=False, stderr=subprocess.DEVNULL)


class Fleet:
    """The stores below one root, and the pipeline that migrates them."""

    def __init__(self, folder, seed):
        self.folder, self.rng = folder, random.Random(seed)
        self.root = os.path.join(folder, "stores")
        self.pipeline = os.path.join(folder, "pipeline")
        self.stores, self.volumes, self.skipped, self.users = [], Volumes(), [], []
        self.stop = multiprocessing.Event()
        os.makedirs(self.root)
        os.makedirs(self.pipeline)

    def write_pipeline(self, more=""):
        with open(os.path.join(self.pipeline, "pipeline.yaml"), "w", encoding="utf-8") as file:
            file.write(f"name: notes\nstores: {{ roots: [{self.root}] }}\nmodels: {NOTES}\n"
                       f"chain: progressive\n{more}")

    def place(self, kind):
        return os.path.join(self.root, f"{len(self.stores) % 97:02}", f"{kind}-{len(self.stores):05}", "Notes.sqlite")

    def add(self, kind, version, template, path=None, note=""):
        path = path or self.place(kind)
        copy(template, path)
        self.stores.append(Store(path, kind, version, template, note))
        return path

    def fill(self, templates, count, damaged, mutate):
        """Sound stores of all versions, and `damaged` of `count` damaged ones, of every kind in turn."""
        for number in range(count):
            version = VERSIONS[number % len(VERSIONS)]
            template = self.rng.choice(templates[version])
            if number >= damaged:
                self.add("sound", version, template)
                continue
            kind = sorted(mutate.KINDS)[number % len(mutate.KINDS)]
            path = self.place("damaged")
            os.makedirs(os.path.dirname(path))
            try:
                mutate.run(template, path, number, kind)
            except Exception as error:      # not every kind fits every store
                shutil.rmtree(os.path.dirname(path))
                self.skipped.append(f"{kind}: {error}")
                self.add("sound", version, template)
                continue
            self.stores.append(Store(path, "damaged", version, template, kind))

    def add_difficult(self, templates, each):
        """Stores in use, foreign ones, and ones on volumes that cannot be written to."""
        for number in range(each):
            version = VERSIONS[number % 4]
            for kind in ("locked", "reading"):
                self.add(kind, version, templates[version][1])
        self.add("writing", VERSIONS[0], templates[VERSIONS[0]][1])
        foreign = os.path.join(self.folder, "foreign")
        path = self.place("foreign")
        shutil.copytree(os.path.dirname(ground.make_fleet(foreign, 1, 40, 1)[0]), os.path.dirname(path))
        os.rename(os.path.join(os.path.dirname(path), "Recipes.sqlite"), path)
        self.stores.append(Store(path, "foreign"))
        size = os.path.getsize(templates[VERSIONS[1]][1])
        full = os.path.join(self.root, "full")
        if self.volumes.mount(full, f"size={size + 20_000}"):
            self.add("full", VERSIONS[1], templates[VERSIONS[1]][1], os.path.join(full, "Notes.sqlite"))
        else:
            self.skipped.append("full: no volume can be mounted")
        locked = os.path.join(self.root, "read-only")
        if self.volumes.mount(locked, "size=64m"):
            self.add("read-only", VERSIONS[1], templates[VERSIONS[1]][1], os.path.join(locked, "Notes.sqlite"))
            subprocess.run(["mount", "-o", "remount,ro", locked], check=True)
        else:
            self.skipped.append("read-only: no volume can be mounted")

    def of_kind(self, *kinds):
        return [s for s in self.stores if s.kind in kinds]

    def start_applications(self):
        """Each store that is in use gets a process that uses it."""
        for number, store in enumerate(self.of_kind("locked", "reading", "writing")):
            store.note = os.path.join(self.folder, f"log-{number}")
            ready = multiprocessing.Event()
            user = multiprocessing.Process(target=_use, args=(store, ready, self.stop), daemon=True)
            user.start()
            ready.wait(30)
            self.users.append(user)

    def end_applications(self):
        self.stop.set()
        for user in self.users:
            user.join(20)
        self.users = []

    def close(self):
        self.end_applications()
        self.volumes.close()


def _use(store, ready, stop):
    """What an application does with its store until it is told to stop."""
    database = sqlite3.connect(store.path, timeout=5, isolation_level=None)
    if store.kind == "locked":
        database.execute("BEGIN EXCLUSIVE")
    elif store.kind == "reading":
        database.execute("SELECT count(*) FROM ZNOTE").fetchone()
    ready.set()
    if store.kind != "writing":
        stop.wait()
        return
    database.close()
    turn = 0
    with open(store.note, "w", encoding="utf-8") as log:
        while not stop.is_set():
            turn += 1
            try:
                database = sqlite3.connect(store.path, timeout=5, isolation_level=None)
                database.execute("BEGIN IMMEDIATE")
                database.execute("UPDATE ZNOTE SET ZTITLE = ?", (f"turn {turn}",))
                database.execute("COMMIT")
                log.write(f"{turn}\n")
                log.flush()
                database.close()
            except sqlite3.Error:
                pass            # it is being replaced, or locked
            time.sleep(0.01)


def last_turn(store):
    """(what the application committed last, what the store has)."""
    with open(store.note, encoding="utf-8") as log:
        turns = [int(line) for line in log.read().split()]
    database = sqlite3.connect(store.path)
    try:
        titles = {t for (t,) in database.execute("SELECT ZTITLE FROM ZNOTE")}
    finally:
        database.close()
    return (turns[-1] if turns else None), titles
