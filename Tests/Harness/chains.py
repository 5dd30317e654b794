"""A chain of versions: what it must come to, and a kill after every durable step of it.

The second version drops an attribute that the third adds again, so a direct migration keeps its
values and a chain must not. Whatever happens, the store at its path is the source or the
destination, and the same command again ends as an undisturbed run does.
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


def write_models(folder):
    bundle = os.path.join(folder, "Shop.xcdatamodeld")
    for name, attributes in VERSIONS.items():
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


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/chain-sweep", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="kill after every Nth step only")
    parser.add_argument("--rows", type=int, default=8)
    options = parser.parse_args(arguments)
    began, problems, kills = time.monotonic(), [], 0
    with ground.workspace("chains") as folder:
        bundle = write_models(folder)
        original = os.path.join(folder, "original", "a.sqlite")
        os.makedirs(os.path.dirname(original))
        done = subprocess.run([ground.fixtures(), "make-store", "--model", os.path.join(bundle, "Shop.xcdatamodel"),
                               "--output", original, "--rows", str(options.rows), "--external", "0.5", "--wal"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode:
            sys.exit(f"make-store failed: {done.stderr.decode(errors='replace')}")
        here = os.path.join(folder, "here")
        store = os.path.join(here, "a.sqlite")
        command = tool.migrate_command(store, [bundle], workers=1, extra=["--chain", "progressive"])

        def fresh():
            shutil.rmtree(here, ignore_errors=True)
            ground.copy_store(original, here)

        fresh()
        before = digest(store)
        run = tool.run(command)
        if run.verdict != "migrated" or run.result.get("path") != PATH:
            sys.exit(f"The undisturbed run took the path {(run.result or {}).get('path')}: {run.why()}")
        after, files = digest(store), external(store)
        kept = sqlite3.connect(store).execute("SELECT count(ZNOTE) FROM ZITEM").fetchone()[0]
        if kept:
            problems.append(f"{kept} values of an attribute that a version between does not have")
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
    for problem in problems:
        print(problem)
    print(f"{kills} kills over {number - 1} durable steps, {len(problems)} problems, "
          f"{time.monotonic() - began:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
