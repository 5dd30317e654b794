"""A chain of versions: what it must come to, and a kill after every durable step of it.

Two chains. In the first every step is inferred; its second version drops an attribute that the third
adds again, so a direct migration keeps its values and a chain must not. In the second one step has a
mapping model, which must be taken for that step and no other. Whatever happens, the store at its path
is the source or the destination, and the same command again ends as an undisturbed run does.
"""
import argparse
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import time

from . import ground, tool

HEAD = ('<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<model '
        'type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" userDefinedModelVersionIdentifier="">\n')
NOTE = '<attribute name="note" optional="YES" attributeType="String"/>'
PHOTO = '<attribute name="photo" optional="YES" attributeType="Binary" allowsExternalBinaryDataStorage="YES"/>'
NAME = '<attribute name="name" optional="YES" attributeType="String"/>'
TITLE = '<attribute name="title" optional="YES" attributeType="String" elementID="name"/>'
RANK = '<attribute name="rank" attributeType="Integer 16" defaultValueString="7"/>'
VERSIONS = {"Shop": NAME + NOTE + PHOTO, "Shop 2": TITLE + PHOTO, "Shop 3": TITLE + NOTE + PHOTO,
            "Shop 10": TITLE + NOTE + RANK}
PATH = ["Shop → Shop 2: inferred", "Shop 2 → Shop 10: inferred"]

# Done twice, or at another step, the mapping would show: it makes more of what it finds.
LABEL = '<attribute name="label" optional="YES" attributeType="String"/>'
TOTAL = '<attribute name="total" attributeType="Integer 32" defaultValueString="1"/>'
MAPPED_VERSIONS = {"Shop": NAME + NOTE + PHOTO, "Shop 2": TITLE + NOTE + PHOTO + TOTAL,
                   "Shop 3": TITLE + LABEL + PHOTO + TOTAL, "Shop 10": TITLE + LABEL + PHOTO + TOTAL + RANK}
MAPPED_PATH = ["Shop → Shop 2: inferred", "Shop 2 → Shop 3: MAPPING", "Shop 3 → Shop 10: inferred"]
MAPPING = """mapping-model: 1
source-model: Shop 2.xcdatamodel
destination-model: Shop 3.xcdatamodel
entity-mappings:
  - source: Item
    destination: Item
    attributes:
      total: $source.total + 4
      label: $source.note
  - source: Part
    destination: Part
    filter: item != nil
"""


def write_models(folder, versions=None):
    bundle = os.path.join(folder, "Shop.xcdatamodeld")
    for name, attributes in (versions or VERSIONS).items():
        os.makedirs(os.path.join(bundle, name + ".xcdatamodel"))
        with open(os.path.join(bundle, name + ".xcdatamodel", "contents"), "w") as file:
            file.write(f'{HEAD}<entity name="Item">{attributes}'
                       '<relationship name="parts" optional="YES" toMany="YES" deletionRule="Nullify" '
                       'destinationEntity="Part" inverseName="item" inverseEntity="Part"/></entity>'
                       '<entity name="Part"><relationship name="item" optional="YES" maxCount="1" '
                       'deletionRule="Nullify" destinationEntity="Item" inverseName="parts" '
                       'inverseEntity="Item"/></entity></model>\n')
    run = tool.run([ground.godwit(), "model", "set-current", bundle, "Shop 10", "--json"])
    if run.exit != 0:
        sys.exit(f"the current version could not be set: {run.why()}")
    return bundle


def digest(store):
    """Of every row, the WAL's included; read from a copy, since reading may write."""
    copy = store + ".looked-at"
    try:
        for suffix in ("", "-wal"):
            if os.path.exists(store + suffix):
                shutil.copyfile(store + suffix, copy + suffix)
        connection = sqlite3.connect(copy)
        tables = [t for (t,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")]
        rows = [(t, connection.execute(f'SELECT * FROM "{t}" ORDER BY 1').fetchall())
                for t in tables if t != "Z_METADATA"]
        connection.close()
        return hashlib.sha256(repr(rows).encode()).hexdigest()
    finally:
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(copy + suffix):
                os.remove(copy + suffix)


def external(store):
    folder = os.path.join(ground.support_folder(store), "_EXTERNAL_DATA")
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def judged(store, model):
    """What the oracle has against a store: [problem]."""
    if not os.path.isdir(ground.ORACLE):
        ground.say("the oracle is not there: the destination is not judged")
        return []
    found = []
    for words in (["ddl"], ["check", "--validation"]):
        done = subprocess.run([sys.executable, os.path.join(ground.ORACLE, "oracle"), words[0], store, "--model", model,
                               *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            found.append(f"the oracle's {words[0]}: {done.stdout.decode(errors='replace')[:600]}")
    return found


def one(store, query):
    """The one value of a query over a store without a WAL."""
    connection = sqlite3.connect(f"file:{store}?immutable=1", uri=True)
    try:
        return connection.execute(query).fetchone()[0]
    finally:
        connection.close()


def inferred_effects(store, _):
    kept = one(store, "SELECT count(ZNOTE) FROM ZITEM")
    return [f"{kept} values of an attribute that a version between does not have"] if kept else []


def mapped_effects(store, original):
    wanted = one(original, "SELECT count(*) FROM ZITEM")
    notes = one(original, "SELECT count(ZNOTE) FROM ZITEM")
    parts = one(original, "SELECT count(ZITEM) FROM ZPART")
    found = []
    for what, query, number in [
            ("items whose total went through the mapping once", "SELECT count(*) FROM ZITEM WHERE ZTOTAL = 5", wanted),
            ("labels out of notes", "SELECT count(ZLABEL) FROM ZITEM", notes),
            ("parts that the filter leaves", "SELECT count(*) FROM ZPART", parts),
            ("parts with their item", "SELECT count(*) FROM ZPART p JOIN ZITEM i ON p.ZITEM = i.Z_PK", parts)]:
        got = one(store, query)
        if got != number or not number:
            found.append(f"{what}: {got} instead of {number}")
    return found


def trial(name, folder, options, versions, path, effects, mapping=None):
    """One chain, undisturbed and killed at every step: number of kills, of steps, [problem]."""
    problems, kills = [], 0
    bundle = write_models(folder, versions)
    extra = ["--chain", "progressive"]
    if mapping:
        file = os.path.join(folder, "labels.yaml")
        with open(file, "w") as out:
            out.write(mapping)
        extra += ["--mapping", file]
        path = [step.replace("MAPPING", file) for step in path]
    original = os.path.join(folder, "original", "a.sqlite")
    os.makedirs(os.path.dirname(original))
    done = subprocess.run([ground.fixtures(), "make-store", "--model", os.path.join(bundle, "Shop.xcdatamodel"),
                           "--output", original, "--rows", str(options.rows), "--external", "0.5", "--wal"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        sys.exit(f"make-store failed: {done.stderr.decode(errors='replace')}")
    here = os.path.join(folder, "here")
    store = os.path.join(here, "a.sqlite")
    command = tool.migrate_command(store, [bundle], workers=1, extra=extra)

    def fresh():
        shutil.rmtree(here, ignore_errors=True)
        ground.copy_store(original, here)

    fresh()
    before = digest(store)
    plan = tool.run([command[0], "plan", *command[2:]])
    if plan.verdict != "migrated" or plan.result.get("path") != path:
        sys.exit(f"{name}: the plan's path is {(plan.result or {}).get('path')}: {plan.why()}")
    run = tool.run(command)
    if run.verdict != "migrated" or run.result.get("path") != path:
        sys.exit(f"{name}: the undisturbed run took the path {(run.result or {}).get('path')}: {run.why()}")
    after, files = digest(store), external(store)
    # With the WAL's rows in it, to be counted.
    settled = os.path.join(folder, "settled.sqlite")
    for suffix in ("", "-wal"):
        shutil.copyfile(original + suffix, settled + suffix)
    sqlite3.connect(settled).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    problems += effects(store, settled) + judged(store, os.path.join(bundle, "Shop 10.xcdatamodel"))
    if mapping:
        # What a later step lacks is said before the first one is begun.
        fresh()
        with open(file, "w") as out:
            out.write(mapping.replace("    destination: Part\n", "    destination: Part\n    policy: Nobodys\n"))
        run = tool.run(command)
        if (run.exit, run.verdict) != (65, "needs-mapping") or run.result.get("path") != path \
                or digest(store) != before or sorted(os.listdir(here)) != sorted(os.listdir(os.path.dirname(original))):
            problems.append(f"a policy that nobody registered: {run.why()}, left {os.listdir(here)}")
        with open(file, "w") as out:
            out.write(mapping)
    number = 1
    while True:
        fresh()
        run = tool.run(command, env=tool.environment(GODWIT_KILL_AFTER_STEP=number))
        if run.exit == 0:
            break
        kills += 1
        if digest(store) not in (before, after):
            problems.append(f"killed after step {number}: the store is neither source nor destination")
        run = tool.run(command)
        left = [n for n in os.listdir(here) if n.endswith(".godwit") or ".partial-" in n or "clone" in n]
        if run.exit != 0 or digest(store) != after or external(store) != files or left:
            problems.append(f"killed after step {number}, run again: {run.why()}; left {left}")
        number += options.every
    return kills, number - 1, [f"{name}: {problem}" for problem in problems]


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/chain-sweep", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="kill after every Nth step only")
    parser.add_argument("--rows", type=int, default=8)
    options = parser.parse_args(arguments)
    began, failed = time.monotonic(), False
    for name, versions, path, effects, mapping in [
            ("inferred", VERSIONS, PATH, inferred_effects, None),
            ("mapped", MAPPED_VERSIONS, MAPPED_PATH, mapped_effects, MAPPING)]:
        with ground.workspace("chains") as folder:
            kills, steps, problems = trial(name, folder, options, versions, path, effects, mapping)
        for problem in problems:
            print(problem)
        print(f"{name}: {kills} kills over {steps} durable steps, {len(problems)} problems, "
              f"{time.monotonic() - began:.0f} s")
        failed |= bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
