"""Where things are: the package, the shared data, the oracle, the built executables."""
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.path.normpath(os.path.join(ROOT, "..", "shared"))
CORPUS = os.path.join(SHARED, "corpus")
ORACLE = os.path.join(SHARED, "oracle")
MODELS = os.path.join(ROOT, "Fixtures", "Recipes.xcdatamodeld")
DESTINATION = "Recipes 2"


def say(*words):
    """For people: everything that is not a result goes to standard error."""
    print(*words, file=sys.stderr, flush=True)


SKIPPED = 77    # the exit code of a trial that could not be made here; scripts/test counts it


def skip(what, why):
    """Ends the script, which says why it showed nothing."""
    print(f"{what}: skipped, since {why}", flush=True)
    sys.exit(SKIPPED)


def has_shared():
    """Whether the third-party stores and the oracle are beside the package."""
    return os.path.isdir(ORACLE) and os.path.isdir(CORPUS)


def skip_unless_shared(what):
    """Ends the script when the third-party data is not beside the package."""
    if not has_shared():
        skip(what, f"{SHARED} is not there")


def load_oracle():
    """Makes the oracle's modules importable, without leaving byte code beside them.

    Tells whether it is there.
    """
    sys.dont_write_bytecode = True
    if ORACLE not in sys.path:
        sys.path.insert(0, ORACLE)
    return has_shared()


def _built(product, variable):
    given = os.environ.get(variable)
    if given:
        path = os.path.abspath(given)
        if not os.access(path, os.X_OK):
            sys.exit(f"{variable} is {given}, and that is no executable. Build it first.")
        return path
    # The build does nothing when nothing changed, and a stale binary would prove nothing.
    command = ["swift", "build", "-c", "release", "--product", product]
    say(f"building {product} (release) …")
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(done.stdout.decode(errors="replace") + f"\n`{' '.join(command)}` failed.")
    return os.path.join(ROOT, ".build", "release", product)


@functools.cache
def godwit():
    """The executable under trial; `GODWIT` names another one."""
    return _built("godwit", "GODWIT")


@functools.cache
def fixtures():
    """The executable that makes stores; `GODWIT_FIXTURES` names another one."""
    return _built("godwit-fixtures", "GODWIT_FIXTURES")


@functools.cache
def trial():
    """The executable with policies; `GODWIT_TRIAL` names another one."""
    return _built("godwit-trial", "GODWIT_TRIAL")


def use_policies():
    """From here on the executable under trial is the one with policies."""
    os.environ["GODWIT"] = trial()
    godwit.cache_clear()


@functools.cache
def staged_tool():
    """An executable with stages of its own; `GODWIT_STAGED` names another one."""
    return _built("staged-tool", "GODWIT_STAGED")


@functools.cache
def benchmarks():
    """The executable that measures; `GODWIT_BENCHMARKS` names another one."""
    return _built("godwit-benchmarks", "GODWIT_BENCHMARKS")


def make_fleet(directory, stores, rows, seed, version=None, wal=False, external=False):
    """Seeded Recipes stores in `directory`; gives their paths in order."""
    command = [fixtures(), "make-fleet", "--directory", directory, "--stores", str(stores),
               "--rows", str(rows), "--seed", str(seed)]
    command += ["--version", version] if version else []
    command += ["--wal", "all"] if wal else []
    command += ["--external"] if external else []
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"make-fleet failed: {done.stderr.decode(errors='replace').strip()}")
    found = stores_in(directory)
    if len(found) != stores:
        sys.exit(f"make-fleet made {len(found)} stores in {directory}, and {stores} were asked for")
    return found


def stores_in(directory):
    """Every SQLite file under a folder, run directories and support folders left out."""
    found = []
    for base, folders, names in os.walk(directory):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and not f.endswith(".godwit"))
        for name in sorted(names):
            path = os.path.join(base, name)
            if name.endswith(("-wal", "-shm", "-journal")) \
                    or ".godwit-backup-" in name or ".godwit-rolled-back-" in name:
                continue
            with open(path, "rb") as file:
                if file.read(16) == b"SQLite format 3\0":
                    found.append(path)
    return found


def support_folder(store):
    """`.STEM_SUPPORT` beside a store."""
    stem = os.path.splitext(os.path.basename(store))[0]
    return os.path.join(os.path.dirname(os.path.abspath(store)), f".{stem}_SUPPORT")


def copy_store(store, folder):
    """Copies a store with its -wal, -journal and support folder; gives the copy's path.

    The -shm is left out: SQLite makes it anew from the -wal.
    """
    os.makedirs(folder, exist_ok=True)
    target = os.path.join(folder, os.path.basename(store))
    for suffix in ("", "-wal", "-journal"):
        if os.path.exists(store + suffix):
            shutil.copyfile(store + suffix, target + suffix)
    if os.path.isdir(support_folder(store)):
        shutil.copytree(support_folder(store), support_folder(target), copy_function=shutil.copyfile)
    return target


def workspace(prefix):
    """A temporary folder that goes away at the end; `GODWIT_TRIALS` names another parent."""
    parent = os.environ.get("GODWIT_TRIALS")
    if parent:
        os.makedirs(parent, exist_ok=True)
    return tempfile.TemporaryDirectory(prefix=f"godwit-{prefix}-", dir=parent,
                                       ignore_cleanup_errors=True)


def fast_workspace(prefix):
    """A workspace in memory where the machine has one: what many small trials wait for is the disk."""
    if not os.environ.get("GODWIT_TRIALS") and os.access("/dev/shm", os.W_OK):
        return tempfile.TemporaryDirectory(prefix=f"godwit-{prefix}-", dir="/dev/shm", ignore_cleanup_errors=True)
    return workspace(prefix)


def write_json(path, value):
    with open(path, "w") as file:
        json.dump(value, file, indent=1)
        file.write("\n")


def table(rows, head):
    """Plain text columns; numbers to the right."""
    rows = [[str(x) for x in row] for row in rows]
    widths = [max(len(r[i]) for r in [list(head)] + rows) for i in range(len(head))]
    number = [all(r[i].replace(".", "", 1).replace(" ", "").isdigit() for r in rows) and bool(rows)
              for i in range(len(head))]

    def line(row):
        cells = [c.rjust(w) if n else c.ljust(w) for c, w, n in zip(row, widths, number)]
        return "  ".join(cells).rstrip()
    return "\n".join([line(list(head)), line(["-" * w for w in widths])] + [line(r) for r in rows])
