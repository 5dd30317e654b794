"""Those that take turns in the benchmark: Godwit, and what one could do without it.

Every one ends with its result on disk. Godwit's time includes its validation, its verification and
its commit. Processor seconds are those of all its processes: they say more than the clock while
others use the machine.
"""
import dataclasses
import json
import os
import resource
import shutil
import subprocess
import sys
import time

from . import benchsql, ground, tool

RUNNER = [sys.executable, "-S", "-E", benchsql.__file__]
# One more Godwit beside the expressions: the same with every attribute copied.
COPIES = "Bench.copies.yaml"


@dataclasses.dataclass
class Sample:
    """One turn of one contender."""
    seconds: float
    processor: float
    result: dict | None = None      # Godwit's result line


def flush(path):
    """The file on disk, its folder's entry, too."""
    for name in (path, os.path.dirname(path)):
        descriptor = os.open(name, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def processor_seconds():
    """Of this process and of all that have ended below it."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def measured(action):
    before, began = processor_seconds(), time.monotonic()
    result = action()
    return Sample(time.monotonic() - began, processor_seconds() - before, result)


@dataclasses.dataclass
class Migration:
    """One store, one change of its model, and the contenders' files."""
    name: str
    title: str
    store: str
    models: str
    destination: str
    mapping: str | None
    policies: bool
    script: str
    in_place: str

    @classmethod
    def listed(cls, folder, store):
        """What `bench-store --scripts` wrote into a folder."""
        with open(os.path.join(folder, "migrations.json"), encoding="utf-8") as file:
            found = json.load(file)
        models = os.path.join(os.path.dirname(store), "Bench.xcdatamodeld")
        return [cls(m["name"], m["title"], store, models, m["destination"], m.get("mapping"), m["hasPolicies"],
                    os.path.join(folder, m["script"]), os.path.join(folder, m["inPlace"])) for m in found]

    def contenders(self, rows, workers):
        """{name: action(out)}; `rows` tells whether Python's row by row is among them."""
        found = {"godwit": lambda out: self.godwit(out, workers, self.mapping),
                 "script": lambda out: self.sql(out, self.script),
                 "alter": self.alter, "cp": self.copy}
        if rows:
            found["rows"] = lambda out: self.finish([*RUNNER, "rows", out, self.script], out)
        if self.mapping and not self.policies:
            found["copies"] = lambda out: self.godwit(out, workers, COPIES)
        return found

    def command(self, out, workers, mapping, extra=()):
        words = ["--mapping", os.path.join(ground.ROOT, "Fixtures", mapping)] if mapping else []
        command = tool.migrate_command(self.store, [self.models], self.destination, out, workers, extra=[*words, *extra])
        return [ground.trial(), *command[1:]] if self.policies else command

    def godwit(self, out, workers, mapping):
        run = tool.run(self.command(out, workers, mapping), timeout=7200)
        if run.exit:
            sys.exit(f"godwit failed at {self.name}: {run.why()}")
        return run.result

    def sql(self, out, script):
        """By the shell; by Python where the script needs functions that the shell lacks."""
        shell = None if self.mapping else shutil.which("sqlite3")
        if not shell:
            return self.finish([*RUNNER, "apply", out, script], out)
        with open(script, "rb") as text:
            return self.finish([shell, "-bail", out], out, text)

    def alter(self, out):
        self.copy(out, on_disk=False)
        self.sql(out, self.in_place)

    def copy(self, out, on_disk=True):
        # A reflink would compare Godwit with nothing at all.
        subprocess.run(["cp", "--reflink=never", self.store, out], check=True)
        if on_disk:
            flush(out)

    @staticmethod
    def finish(command, out, text=subprocess.DEVNULL):
        done = subprocess.run(command, stdin=text, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            sys.exit(f"{command[0]} failed: {done.stderr.decode(errors='replace')[-2000:]}")
        flush(out)


def make_store(folder, words):
    """The store in a folder of its own, with the scripts of its migrations."""
    os.makedirs(folder)
    store, scripts = os.path.join(folder, "bench.sqlite"), os.path.join(folder, "scripts")
    subprocess.run([ground.fixtures(), "bench-store", "--output", store, "--scripts", scripts, *words],
                   check=True, stdout=sys.stderr)
    return Migration.listed(scripts, store)


def migrations(folder, asked, words):
    """Those asked for, in the order of their names; c has a store with one more table."""
    found = []
    if set(asked) - {"c"}:
        found += make_store(os.path.join(folder, "store"), words)
    if "c" in asked:
        found += make_store(os.path.join(folder, "settings"), [*words, "--settings"])
    return sorted((m for m in found if m.name in asked), key=lambda m: m.name)


def compare(migration, name, godwits, rivals):
    """Ends the benchmark where a rival did less than Godwit, or more."""
    found = benchsql.differences(godwits, rivals)
    if found:
        sys.exit(f"{migration.name}: the result of {name} is not Godwit's: {'; '.join(found)}")


def warm_up(migration, contenders, folder):
    """One turn each, not counted; proves that all but cp and the copies have Godwit's rows."""
    outs = {name: out_path(folder, migration, name) for name in contenders}
    contenders["godwit"](outs["godwit"])
    for name, action in contenders.items():
        if name == "godwit":
            continue
        action(outs[name])
        if name not in ("cp", "copies"):
            compare(migration, name, outs["godwit"], outs[name])
        remove(outs[name])
    remove(outs["godwit"])
    os.sync()


def turn(migration, action, folder, name):
    out = out_path(folder, migration, name)
    sample = measured(lambda: action(out))
    remove(out)
    return sample


def out_path(folder, migration, name):
    return os.path.join(folder, f"{migration.name}-{name}.sqlite")


def remove(path):
    for suffix in ("", "-wal", "-shm", "-journal"):
        if os.path.exists(path + suffix):
            os.remove(path + suffix)
    shutil.rmtree(path + ".godwit", ignore_errors=True)
