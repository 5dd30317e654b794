"""Many stores: a pipeline against `xargs -P` of the script, and a run that finds nothing to do.

In place, each side keeps a backup of every store. Each store of the script is flushed, with its
folder, as Godwit's are.
"""
import os
import shutil
import sqlite3
import subprocess
import sys
import uuid

from . import benchhistory, benchreport, benchrivals, ground, tool

KILOBYTES = (1000, 100)
# The smallest stores, for the run with nothing to do.
TINY = 1
# Kilobytes of a store → what is aimed at, in times of the script.
GOALS = {1000: 0.6, 100: 0.4}
RERUN_GOAL = 3.0    # seconds, for 10 000 stores
NAME = "Bench.sqlite"
OUTPUT = 'cd "$1" && sqlite3 -bail Bench-2.sqlite <"$0" >/dev/null && sync Bench-2.sqlite .'
IN_PLACE = ('cd "$1" && sqlite3 -bail new.sqlite <"$0" >/dev/null && sync new.sqlite . && '
            "ln Bench.sqlite backup.sqlite && mv new.sqlite Bench.sqlite && sync .")


def template(folder, kilobytes, seed):
    """One store of migration a, whose script names its source by a path in the working directory."""
    os.makedirs(folder)
    store = os.path.join(folder, NAME)
    subprocess.run([ground.fixtures(), "bench-store", "--output", store, "--scripts", folder, "--kilobytes", str(kilobytes),
                    "--seed", str(seed)], check=True, stdout=sys.stderr)
    migration = next(m for m in benchrivals.Migration.listed(folder, store) if m.name == "a")
    with open(migration.script, encoding="utf-8") as file:
        text = file.read()
    with open(migration.script, "w", encoding="utf-8") as file:
        file.write(text.replace(f"ATTACH '{store}'", f"ATTACH '{NAME}'"))
    return migration


def copies(store, folder, count):
    """The same store at many paths, each with a UUID of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    with open(store, "rb") as file:
        content = file.read()
    database = sqlite3.connect(f"file:{store}?immutable=1", uri=True)
    own = database.execute("SELECT Z_UUID FROM Z_METADATA").fetchone()[0].encode()
    database.close()
    if content.count(own) != 1:
        sys.exit(f"{store} names its UUID {content.count(own)} times, and the benchmark replaces one")
    for number in range(count):
        where = os.path.join(folder, f"user-{number + 1:05}")
        os.makedirs(where)
        with open(os.path.join(where, NAME), "wb") as file:
            file.write(content.replace(own, str(uuid.UUID(int=number + 1, version=4)).upper().encode()))
    # The copies' own way to the disk belongs to nobody's time.
    os.sync()


def pipeline(folder, migration, stores, in_place):
    os.makedirs(folder)
    commit = "replace" if in_place else "{ beside: -2 }"
    path = os.path.join(folder, "pipeline.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"name: bench\nstores:\n  roots: [{stores}]\n  include: \"*/{NAME}\"\n"
                   f"models: {migration.models}\ndestination: {migration.destination}\ncommit: {commit}\n")
    return path


def godwit(path, workers, verdict, count):
    run = tool.run([ground.godwit(), "run", path, "--workers", str(workers), "--json"], timeout=7200)
    summary = run.lines[-1] if run.lines else {}
    if run.exit or summary.get(verdict) != count:
        sys.exit(f"godwit run failed: exit {run.exit}, {summary} {run.stderr[-1000:]}")
    return None


def script(migration, stores, jobs, in_place):
    names = "\0".join(sorted(os.path.join(stores, name) for name in os.listdir(stores))).encode()
    done = subprocess.run(["xargs", "-0", "-n1", f"-P{jobs}", "sh", "-c", IN_PLACE if in_place else OUTPUT, migration.script],
                          input=names, stderr=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"the script failed: {done.stderr.decode(errors='replace')[-1000:]}")
    return None


def turn(contender, migration, given, folder, in_place):
    """One turn over fresh copies; the sample, and the first store's result for a comparison."""
    stores, state = os.path.join(folder, "stores"), os.path.join(folder, "pipeline")
    copies(migration.store, stores, given.stores)
    shutil.rmtree(state, ignore_errors=True)
    if contender == "godwit":
        path = pipeline(state, migration, stores, in_place)
        sample = benchrivals.measured(lambda: godwit(path, given.workers, "migrated", given.stores))
    else:
        sample = benchrivals.measured(lambda: script(migration, stores, given.workers, in_place))
    result = os.path.join(folder, contender + ".sqlite")
    shutil.copyfile(os.path.join(stores, "user-00001", NAME if in_place else "Bench-2.sqlite"), result)
    shutil.rmtree(stores)
    return sample, result


def fleet(kilobytes, in_place, given, folder):
    """{contender: samples} of the runs over one size and one way to commit."""
    where = os.path.join(folder, f"{kilobytes}-{in_place}")
    migration = template(os.path.join(where, "template"), kilobytes, given.seed)
    samples, names = {"godwit": [], "script": []}, ["godwit", "script"]
    for number in range(given.runs or 3):
        ground.say(f"{given.stores} stores of {kilobytes} KB, {'in place' if in_place else 'output'}, round {number + 1} …")
        results = {}
        for name in names if number % 2 == 0 else names[::-1]:
            sample, results[name] = turn(name, migration, given, where, in_place)
            samples[name].append(sample)
        if number == 0:
            benchrivals.compare(migration, "the script", results["godwit"], results["script"])
    shutil.rmtree(where)
    return samples


def rerun(given, folder):
    """Seconds of runs over stores that are finished."""
    where = os.path.join(folder, "rerun")
    migration = template(os.path.join(where, "template"), TINY, given.seed)
    done = os.path.join(where, "done.sqlite")
    migration.godwit(done, given.workers, None)
    ground.say(f"{given.rerun} finished stores of {os.path.getsize(done) / 1e3:.0f} KB …")
    stores = os.path.join(where, "stores")
    copies(done, stores, given.rerun)
    path = pipeline(os.path.join(where, "pipeline"), migration, stores, True)
    # The first run finds the stores; the ones after it have its state.
    samples = [benchrivals.measured(lambda: godwit(path, given.workers, "same-model", given.rerun))
               for _ in range(1 + (given.runs or 3))]
    return samples[0], samples[1:]


def run(given, folder):
    if not shutil.which("sqlite3"):
        sys.exit("--fleet needs the sqlite3 shell, which xargs starts")
    found, results, goals = {"stores": given.stores, "workers": given.workers, "fleets": {}}, {}, []
    for kilobytes in KILOBYTES:
        for in_place in (True, False):
            name = f"fleet of {kilobytes} KB, {'in place' if in_place else 'output'}"
            samples = fleet(kilobytes, in_place, given, folder)
            figures = benchreport.contenders(samples)
            found["fleets"][name] = figures
            results[name] = benchhistory.result(figures["godwit"])
            value, limit = figures["godwit"]["ratio"], GOALS[kilobytes]
            goals.append({"goal": name, "found": round(value, 3), "limit": f"at most {limit}", "met": value <= limit})
            print(f"\n{name}: {given.stores} stores, the script by xargs -P{given.workers}")
            benchreport.print_contenders(figures)
            each = figures["godwit"]["seconds"]["median"] / given.stores
            print(f"godwit: {each * 1e3:.1f} ms a store", flush=True)
    if given.rerun:
        first, samples = rerun(given, folder)
        figures = benchreport.contenders({"first run": [first], "rerun": samples})
        found["rerun"] = {"stores": given.rerun} | figures
        print(f"\nnothing to do: {given.rerun} finished stores")
        benchreport.print_contenders(figures)
        value, limit = figures["rerun"]["seconds"]["median"], RERUN_GOAL * given.rerun / 10_000
        goals.append({"goal": "rerun, seconds", "found": round(value, 3), "limit": f"at most {limit:g}", "met": value <= limit})
    return found | {"goals": goals}, results
