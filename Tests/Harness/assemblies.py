"""Both assemblies of a destination, and both readers of a source: by pages, and through SQLite.

Stores of every physical shape are migrated twice, with one logical digest, and SQLite's integrity_check has nothing
to say of either result. The rows of each file that is met are read from its pages and by SQLite: the same, or the
page reader refuses.
"""
import argparse
import collections
import concurrent.futures
import functools
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile

from . import corpus, ground, judge, mutations, owncorpus, tool

PAGE_SIZES = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
KEYS = {"dense": (1, 0), "sparse": (1_000_003, 5), "very sparse": (1 << 40, 0), "huge": (1, (1 << 62) - 5)}
version = functools.partial(owncorpus.version, "Fixtures/Bench")
# Everything is computed, every entity number shifts, a table goes, all but one table is carried.
MIGRATIONS = (("Bench", "Bench 2"), ("Bench", "Bench 4"), ("Bench 2", "Bench 3"), ("Bench 2", "Bench 4"),
              ("Bench 5", "Bench 6"), ("Bench 5", "Bench 6"))
# Columns that hold keys of the table of their name.
REFERENCES = ("ZCUSTOMER", "ZPRODUCT", "ZADDRESS")
OPTIONAL = ("ZSCORE", "ZDETAILS", "ZCOMMENT", "ZREMARK", "ZLEGACYCODE")
ASSEMBLIES = ("pages", "sqlite")


def make_store(folder, old, new, rows, seed):
    path = os.path.join(folder, "source", "store.sqlite")
    os.makedirs(os.path.dirname(path))
    subprocess.run([ground.fixtures(), "make-store", "--model", version(old), "--valid-for", version(new), "--output", path,
                    "--rows", str(rows), "--seed", str(seed)], check=True, stdout=subprocess.DEVNULL)
    return path


def tables(database, kind):
    names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'Z*'")]
    columns = {name: [(row[1], row[2]) for row in database.execute(f'PRAGMA table_info("{name}")')] for name in names}
    if kind == "join":
        return {name: found for name, found in columns.items() if name.startswith("Z_") and name[2].isdigit()}
    return {name: found for name, found in columns.items() if any(column == "Z_OPT" for column, _ in found)}


def shape(rng, path, wide):
    """Gives a sound store another physical shape: what was done."""
    database = sqlite3.connect(path, isolation_level=None)
    said = [rows(rng, database), values(rng, database, wide), keys(rng, database)]
    size, vacuum = rng.choice(PAGE_SIZES), rng.choice((0, 1, 2))
    database.execute("PRAGMA journal_mode = DELETE")
    database.execute(f"PRAGMA page_size = {size}")
    database.execute(f"PRAGMA auto_vacuum = {vacuum}")
    database.execute("VACUUM")
    if rng.random() < .3:   # free pages, and free places within pages
        database.execute("CREATE TABLE scrap AS SELECT hex(randomblob(300)) AS a FROM ZREVIEW LIMIT 500")
        database.execute("DROP TABLE scrap")
        said.append("free pages")
    if rng.random() < .5:
        database.execute("PRAGMA journal_mode = WAL")
    database.close()
    return [f"pages of {size}", f"auto_vacuum {vacuum}", *filter(None, said)]


def rows(rng, database):
    """Tables without rows, or with one: members first, so that nothing refers to what is gone."""
    kept = rng.choice((None, None, None, 0, 1))
    if kept is None:
        return None
    for table in tables(database, "join"):
        database.execute(f'DELETE FROM "{table}"')
    for table in sorted(tables(database, "entity"), key=lambda name: name in REFERENCES):
        database.execute(f'DELETE FROM "{table}" WHERE Z_PK NOT IN (SELECT Z_PK FROM "{table}" LIMIT {kept})')
        for column, _ in tables(database, "entity")[table]:
            if column in REFERENCES:
                database.execute(f'UPDATE "{table}" SET "{column}" = (SELECT Z_PK FROM "{column}")')
    return "empty tables" if kept == 0 else "tables of one row"


def values(rng, database, wide):
    """Texts around every length at which a record spills or fills a page, numbers at their ends, or NULLs."""
    kind = rng.choice(("as made", "long", "boundaries", "boundaries", "NULLs", "extremes"))
    for table, columns in tables(database, "entity").items():
        texts = [name for name, declared in columns if declared == "VARCHAR"]
        if kind in ("long", "boundaries"):
            if texts:
                name = rng.choice(texts)    # some have an index
                # A leaf holds a record of 4 061 bytes, and 1 016 of its kind fill four to a page.
                ends = (489, 1016, 4061, 4061 + 4092, 4061 + 2 * 4092)
                found = database.execute(f'SELECT Z_PK FROM "{table}" ORDER BY Z_PK LIMIT 400').fetchall()
                for number, (key,) in enumerate(found):
                    length = rng.choice(ends) - 60 + number % 70 if kind == "boundaries" else rng.randrange(120_000 // (1 + number))
                    database.execute(f'UPDATE "{table}" SET "{name}" = ? WHERE Z_PK = ?', ("x" * max(0, length), key))
        elif kind == "NULLs":
            for name, _ in columns:
                if name in OPTIONAL:
                    database.execute(f'UPDATE "{table}" SET "{name}" = NULL WHERE Z_PK % 5')
        elif kind == "extremes":
            for name in ("ZPOINTS", "ZNUMBER"):
                if (name, "INTEGER") in columns:
                    # Of every length that a record gives to a number.
                    ends = [end for n in (0, 7, 15, 23, 31, 47, 63) if n < 32 or wide for end in (-(1 << n), (1 << n) - 1)]
                    for place, end in enumerate(ends):
                        database.execute(f'UPDATE "{table}" SET "{name}" = ? WHERE Z_PK % {len(ends)} = {place}', (end,))
    return kind


def keys(rng, database):
    """Other keys, far apart or near the largest, wherever they stand."""
    kind = rng.choice(sorted(KEYS))
    times, plus = KEYS[kind]
    if kind == "dense":
        return None
    database.execute("BEGIN")
    for table, columns in (tables(database, "entity") | tables(database, "join")).items():
        isJoin = not any(column == "Z_OPT" for column, _ in columns)
        held = [name for name, _ in columns if isJoin and "FOK" not in name or name == "Z_PK" or name in REFERENCES]
        # From the highest on, so that no new key is one that another row still has.
        order = sorted((row for row in database.execute(f'SELECT rowid, {", ".join(held)} FROM "{table}"')), reverse=True)
        for rowid, *old in order:
            new = [value if value is None else value * times + plus for value in old]
            database.execute(f'UPDATE "{table}" SET {", ".join(f"{name} = ?" for name in held)} WHERE rowid = ?', (*new, rowid))
    for name, in database.execute("SELECT DISTINCT Z_NAME FROM Z_PRIMARYKEY").fetchall():
        database.execute(f'UPDATE Z_PRIMARYKEY SET Z_MAX = (SELECT ifnull(max(Z_PK), 0) FROM "Z{name.upper()}") WHERE Z_NAME = ?', (name,))
    database.execute("COMMIT")
    return f"{kind} keys"


def read_twice(*files):
    """[what differs between the page reader's rows and SQLite's]."""
    done = subprocess.run([ground.fixtures(), "compare-rows", *files], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode in (0, 1):
        return [line for line in done.stdout.decode(errors="replace").splitlines() if "DIFFERS" in line]
    return [f"compare-rows ended with {done.returncode}: {done.stderr.decode(errors='replace')[-300:]}"]


def assembled(store, models, to, folder):
    """Problems of the two assemblies of one migration, and the verdict of the first."""
    problems, found = [], {}
    for way in ASSEMBLIES:
        out = os.path.join(folder, way, os.path.basename(store))
        os.makedirs(os.path.dirname(out))
        run = tool.run(tool.migrate_command(store, models, to, out, 2), env=tool.environment(GODWIT_ASSEMBLY=way))
        problems += [f"{way}: {problem}" for problem in tool.contract_problems(run)]
        found[way] = (run.exit, run.verdict, (run.result or {}).get("digest"), out)
        if run.exit == 0 and run.verdict == "migrated":
            database = sqlite3.connect(f"file:{out}?mode=ro", uri=True)
            told = [row[0] for row in database.execute("PRAGMA integrity_check")]
            database.close()
            if told != ["ok"]:
                problems.append(f"{way}: integrity_check: {told[0]}")
            problems += read_twice(out)
    if found["pages"][:3] != found["sqlite"][:3]:
        problems.append(f"the assemblies differ: {found['pages'][:3]} and {found['sqlite'][:3]}")
    return problems, found["pages"]


def generated(number, seed, megabytes=None):
    """One store of a shape of its own; gives a record."""
    rng = random.Random(f"{seed} {number}")
    folder = tempfile.mkdtemp(prefix="assemblies-", dir=os.environ.get("GODWIT_TRIAL_FOLDER"))
    try:
        old, new = rng.choice(MIGRATIONS)
        # An object takes about 250 bytes with its indexes.
        count = megabytes * 1000 if megabytes else rng.choice((0, 1, 7, 60, 700, 4000))
        store = make_store(folder, old, new, count, rng.randrange(1 << 30))
        said = ["as made"] if megabytes else shape(rng, store, wide=old == "Bench 2")
        problems = read_twice(store)
        more, (code, verdict, _, out) = assembled(store, [version(old), version(new)], version(new), folder)
        problems += more
        if verdict != "migrated":
            problems.append(f"{verdict}, exit {code}, and nothing stands in the way")
        elif not megabytes:
            found, _ = corpus.judge_output(store, out, version(old), version(new))
            problems += found
        else:
            said.append(f"{os.path.getsize(store)} bytes")
        return {"name": f"store {number}: {count} rows, {', '.join(said)}, {old} to {new}", "verdict": verdict,
                "problems": problems}
    finally:
        shutil.rmtree(folder)


def of_corpus(case):
    folder = tempfile.mkdtemp(prefix="assemblies-", dir=os.environ.get("GODWIT_TRIAL_FOLDER"))
    try:
        store = ground.copy_store(os.path.join(ground.CORPUS, case["store"]), os.path.join(folder, "store"))
        (a, b), _ = corpus.specs(case, store, folder)
        problems, (_, verdict, _, _) = assembled(store, [x for x in (a, b) if x], b, folder)
        return {"name": f"case {case['id']}", "verdict": verdict, "problems": problems + read_twice(store)}
    finally:
        shutil.rmtree(folder)


def damaged(case, kind, seed):
    """A damaged store is only read: by pages as by SQLite, or refused."""
    folder = tempfile.mkdtemp(prefix="assemblies-", dir=os.environ.get("GODWIT_TRIAL_FOLDER"))
    try:
        store = os.path.join(folder, os.path.basename(case["store"]))
        judge.mutate.run(os.path.join(ground.CORPUS, case["store"]), store, seed, kind)
        problems = read_twice(store) if os.path.isfile(store) else []
        return {"name": f"case {case['id']} {kind} {seed}", "verdict": "read", "problems": problems}
    finally:
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(prog="scripts/assemblies", description=__doc__)
    parser.add_argument("--stores", type=int, default=300, help="generated stores")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, nargs="+", metavar="NUMBER", help="these of them, and nothing else")
    parser.add_argument("--corpus", action="store_true", help="every case of the corpus that is lightweight, too")
    parser.add_argument("--mutations", type=int, default=0, metavar="SEEDS", help="and damaged stores of every kind, read only")
    parser.add_argument("--megabytes", type=int, help="and one store of this size: 1100 goes across the lock-byte page")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    verdicts, bad = collections.Counter(), []
    with ground.workspace("assemblies") as folder, concurrent.futures.ProcessPoolExecutor(given.jobs) as pool:
        os.environ["GODWIT_TRIAL_FOLDER"] = folder
        tasks = chosen(given, os.path.join(folder, "own"))
        for done, record in enumerate(concurrent.futures.as_completed([pool.submit(*task) for task in tasks]), 1):
            record = record.result()
            verdicts[record["verdict"]] += 1
            if record["problems"]:
                bad.append(record)
                print(f"{record['name']}: {'; '.join(record['problems'])}", flush=True)
            if done % 100 == 0:
                ground.say(f"{done} of {len(tasks)}, {len(bad)} failed")
    print(f"{len(tasks)} stores, {len(bad)} failed: {json.dumps(dict(sorted(verdicts.items())))}")
    return int(bool(bad) or not tasks)


def chosen(given, folder):
    """What is to be done, each as a function and its arguments."""
    if given.only:
        return [(generated, number, given.seed) for number in given.only]
    tasks = [(generated, number, given.seed) for number in range(given.stores)]
    if given.corpus:
        cases = corpus.cases() if judge.HAS_ORACLE else owncorpus.cases(folder)
        tasks += [(of_corpus, case) for case in cases if case["expected"] == "lightweight"]
    if given.mutations:
        cases = ([c for c in corpus.cases() if c["id"] in mutations.CASES] if judge.HAS_ORACLE
                 else owncorpus.varied(folder, 5))
        tasks += [(damaged, case, kind, seed) for case in cases for kind in sorted(judge.mutate.KINDS)
                  for seed in range(given.mutations)]
    if given.megabytes:
        tasks.append((generated, 0, given.seed, given.megabytes))
    return tasks


if __name__ == "__main__":
    sys.exit(main())
