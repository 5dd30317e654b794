"""A staged migration with handlers in Swift: what it comes to, and a kill after every durable step.

The stages are those of Tests/StagedTool. Its handlers change what they find, so that one whose
result was seen twice would show. Whatever happens, the store at its path is the source or the
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
from .chains import HEAD, digest, external, judged

NAME = '<attribute name="name" optional="YES" attributeType="String"/>'
NOTE = '<attribute name="note" optional="YES" attributeType="String"/>'
PHOTO = '<attribute name="photo" optional="YES" attributeType="Binary" allowsExternalBinaryDataStorage="YES"/>'
TITLE = '<attribute name="title" optional="YES" attributeType="String"/>'
REQUIRED = '<attribute name="title" attributeType="String" minValueString="2"/>'
RANK = '<attribute name="rank" attributeType="Integer 16" defaultValueString="7"/>'


def relationship(name, target, inverse, many=False, ordered=False):
    form = 'toMany="YES"' if many else 'maxCount="1"'
    order = 'ordered="YES"' if ordered else ""
    return (f'<relationship name="{name}" optional="YES" {form} {order} deletionRule="Nullify" '
            f'destinationEntity="{target}" inverseName="{inverse}" inverseEntity="{target}"/>')


PARTS = relationship("parts", "Part", "item", many=True)
CHAIN = relationship("previous", "Item", "next") + relationship("next", "Item", "previous")
SHELVED = relationship("shelf", "Shelf", "items") + relationship("seenOn", "Shelf", "seen", many=True, ordered=True)
PART = f'<entity name="Part">{relationship("item", "Item", "parts")}</entity>'
SHELF = ('<entity name="Shelf"><attribute name="name" attributeType="String"/>'
         + relationship("items", "Item", "shelf", many=True, ordered=True)
         + relationship("seen", "Item", "seenOn", many=True) + "</entity>")
VERSIONS = {
    "Shop": f'<entity name="Item">{NAME}{NOTE}{PHOTO}{PARTS}</entity>{PART}',
    "Shop 2": f'<entity name="Item">{NAME}{NOTE}{PHOTO}{TITLE}{PARTS}{CHAIN}</entity>{PART}',
    "Shop 3": f'<entity name="Item">{NOTE}{PHOTO}{REQUIRED}{PARTS}{CHAIN}{SHELVED}</entity>{PART}{SHELF}',
    "Shop 4": f'<entity name="Item">{NOTE}{PHOTO}{REQUIRED}{RANK}{PARTS}{CHAIN}{SHELVED}</entity>{PART}{SHELF}',
}
PATH = ["Shop: willMigrate of titles", "Shop → Shop 2: inferred", "Shop 2: didMigrate of titles",
        "Shop 2 → Shop 3: inferred", "Shop 3: didMigrate of shelves", "Shop 3 → Shop 4: inferred"]
HANDLERS = ["markNotes", "fillTitles", "makeShelves"]
DAMAGE = ["DROP TABLE ZPART", "ALTER TABLE ZITEM DROP COLUMN ZNOTE", "DROP INDEX ZPART_ZITEM_INDEX",
          "DELETE FROM Z_PRIMARYKEY", "UPDATE ZPART SET Z_ENT = 77 WHERE Z_PK = 1"]


def write_models(folder):
    bundle = os.path.join(folder, "Shop.xcdatamodeld")
    for name, entities in VERSIONS.items():
        os.makedirs(os.path.join(bundle, name + ".xcdatamodel"))
        with open(os.path.join(bundle, name + ".xcdatamodel", "contents"), "w") as file:
            file.write(f"{HEAD}{entities}</model>\n")
    run = tool.run([ground.godwit(), "model", "set-current", bundle, "Shop 4", "--json"])
    if run.exit != 0:
        sys.exit(f"the current version could not be set: {run.why()}")
    return bundle


def effects(store):
    """What the handlers should have brought about, counted in the destination: [problem]."""
    connection = sqlite3.connect(f"file:{store}?immutable=1", uri=True)
    def one(query):
        return connection.execute(query).fetchone()[0]
    items, shelves = one("SELECT count(*) FROM ZITEM"), one("SELECT count(*) FROM ZSHELF")
    found = []
    for what, query, wanted in [
            ("notes without exactly one mark", "SELECT count(*) FROM ZITEM WHERE ZNOTE NOT LIKE '%!' OR ZNOTE LIKE '%!!'", 0),
            ("titles that do not end as the note does", "SELECT count(*) FROM ZITEM WHERE substr(ZTITLE, -length(ZNOTE)) <> ZNOTE", 0),
            ("items without parts", "SELECT count(*) FROM ZITEM i WHERE NOT EXISTS (SELECT 1 FROM ZPART p WHERE p.ZITEM = i.Z_PK)", 0),
            ("shelves", "SELECT count(*) FROM ZSHELF", (items + 3) // 4),
            ("items on a shelf", "SELECT count(*) FROM ZITEM WHERE ZSHELF IS NOT NULL AND Z_FOK_SHELF IS NOT NULL", items),
            ("pairs of items and shelves", "SELECT count(*) FROM Z_1SEENON", min(3, items) * shelves),
            ("items that follow another", "SELECT count(*) FROM ZITEM a JOIN ZITEM b ON a.ZPREVIOUS = b.Z_PK AND b.ZNEXT = a.Z_PK", items - 1),
            ("large photos in the row", "SELECT count(*) FROM ZITEM WHERE length(ZPHOTO) > 100001", 0),
            ("highest key", "SELECT Z_MAX - (SELECT max(Z_PK) FROM ZSHELF) FROM Z_PRIMARYKEY WHERE Z_NAME = 'Shelf'", 0)]:
        got = one(query)
        if got != wanted:
            found.append(f"{what}: {got} instead of {wanted}")
    connection.close()
    if items < 4:
        found.append(f"{items} items are too few to show anything")
    return found


def left_behind(folder):
    return [n for n in os.listdir(folder) if n.endswith(".godwit") or ".partial-" in n or "clone" in n]


def fingerprint(folder):
    """Of every byte of a store's files."""
    digests = []
    for base, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            if not base.endswith(".godwit") and ".godwit" not in base:
                with open(os.path.join(base, name), "rb") as file:
                    digests.append((os.path.join(base, name), hashlib.sha256(file.read()).hexdigest()))
    return digests


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/staged-sweep", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="kill after every Nth step only")
    parser.add_argument("--rows", type=int, default=24)
    options = parser.parse_args(arguments)
    began, problems, kills = time.monotonic(), [], 0
    staged = ground.staged_tool()
    with ground.workspace("stages") as folder:
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
        command = [staged, "migrate", store, "--models", bundle, "--workers", "1", "--json"]

        def environment(**more):
            return tool.environment(STAGED_TOOL_MODELS=bundle, **more)

        def fresh():
            shutil.rmtree(here, ignore_errors=True)
            ground.copy_store(original, here)

        fresh()
        before = digest(store)
        plan = tool.run([staged, "plan", *command[2:]], env=environment())
        if plan.verdict != "migrated" or plan.result.get("path") != PATH:
            sys.exit(f"The plan's path is {(plan.result or {}).get('path')}: {plan.why()}")
        run = tool.run(command, env=environment())
        if run.verdict != "migrated" or run.result.get("path") != PATH:
            sys.exit(f"The undisturbed run took the path {(run.result or {}).get('path')}: {run.why()}")
        after, files = digest(store), external(store)
        problems += effects(store) + judged(store, os.path.join(bundle, "Shop 4.xcdatamodel"))
        again = tool.run(command, env=environment())
        if again.verdict != "same-model":
            problems.append(f"a migrated store: {again.why()}")

        # With an output the source is not touched.
        fresh()
        untouched = fingerprint(here)
        beside = os.path.join(folder, "beside.sqlite")
        table = os.path.join(folder, "uris.tsv")
        run = tool.run(command + ["--output", beside, "--uri-table", table], env=environment())
        if run.verdict != "migrated" or digest(beside) != after or external(beside) != files:
            problems.append(f"with --output: {run.why()}")
        if fingerprint(here) != untouched:
            problems.append("with --output, the source was touched")
        kept = sum(1 for line in open(table)) - 1
        counted = sqlite3.connect(store).execute("SELECT count(*) FROM ZPART").fetchone()[0]
        counted += sqlite3.connect(beside).execute("SELECT count(*) FROM ZITEM").fetchone()[0]
        if kept != counted:
            problems.append(f"{kept} pairs of object URIs instead of {counted}")

        # A rehearsal goes through the stages privately, and names a handler's own error.
        for handler, status, verdict in [("", 0, "migrated"), (HANDLERS[0], 3, "failed")]:
            fresh()
            run = tool.run([staged, "rehearse", bundle, "--stores", here, "--json"],
                           env=environment(STAGED_TOOL_THROW=handler))
            results = [x for x in run.lines if x.get("event") == "result"]
            if (run.exit, [r.get("verdict") for r in results]) != (status, [verdict]):
                problems.append(f"a rehearsal, {handler or 'undisturbed'}: {run.why()}")
            said = [(r.get("error") or {}).get("type", "") for r in run.reasons]
            if handler and not any(name.endswith(".Stopped") for name in said):
                problems.append(f"a rehearsal does not name the error of {handler}: {run.why()}")
            if fingerprint(here) != untouched or left_behind(here):
                problems.append(f"a rehearsal, {handler or 'undisturbed'}, touched the stores")

        # What is wrong with the store is said before the handler that comes first meets it.
        for damage in DAMAGE:
            fresh()
            database = sqlite3.connect(store)
            database.executescript(damage)
            database.close()
            damaged = fingerprint(here)
            run = tool.run(command, env=environment())
            found = [reason.get("reason") for reason in run.reasons]
            if run.exit != 65 or run.verdict != "refused" or not found or "internal" in found:
                problems.append(f"{damage}: {run.why()}")
            if fingerprint(here) != damaged or left_behind(here):
                problems.append(f"{damage}: the source was touched: {left_behind(here)}")

        for handler in HANDLERS:
            fresh()
            run = tool.run(command, env=environment(STAGED_TOOL_THROW=handler))
            error = (run.reasons[0] if run.reasons else {}).get("error") or {}
            if (run.exit, run.verdict) != (65, "failed") or not error.get("type", "").endswith(".Stopped"):
                problems.append(f"{handler} threw: {run.why()}, {error}")
            if fingerprint(here) != untouched or left_behind(here):
                problems.append(f"{handler} threw and the source was touched: {left_behind(here)}")
            run = tool.run(command, env=environment(STAGED_TOOL_DIE=handler))
            if run.exit != -9 or fingerprint(here) != untouched:
                problems.append(f"{handler} was killed: exit {run.exit}, or the source was touched")
            kills += 1
            run = tool.run(command, env=environment(STAGED_TOOL_EXIT=handler))
            if run.exit != 1 or run.result or fingerprint(here) != untouched or "before there was a result" not in run.stderr:
                problems.append(f"{handler} called exit(0): exit {run.exit}, {run.stderr}, or the source was touched")
            run = tool.run(command, env=environment(STAGED_TOOL_SAY=handler))
            if run.stray or f"said by {handler}" not in run.stderr:
                problems.append(f"{handler} printed among the results, or nowhere: {run.stray}, {run.stderr}")
            if run.exit != 0 or digest(store) != after or external(store) != files or left_behind(here):
                problems.append(f"{handler} was killed, run again: {run.why()}; left {left_behind(here)}")

        # Hashes are the same in every process, so that a handler may go over a set.
        shuffled = set()
        for number in range(3):
            fresh()
            tool.run(command, env=environment(STAGED_TOOL_SHUFFLE=1))
            shuffled.add(digest(store))
        if len(shuffled) > 1 or before in shuffled or after in shuffled:
            problems.append("a handler that goes over a set came to several stores, or to none")

        number = 1
        while True:
            fresh()
            run = tool.run(command, env=environment(GODWIT_KILL_AFTER_STEP=number))
            if run.exit == 0:
                break
            kills += 1
            if digest(store) not in (before, after):
                problems.append(f"killed after step {number}: the store is neither source nor destination")
            run = tool.run(command, env=environment())
            if run.exit != 0 or digest(store) != after or external(store) != files or left_behind(here):
                problems.append(f"killed after step {number}, run again: {run.why()}; left {left_behind(here)}")
            number += options.every
    for problem in problems:
        print(problem)
    print(f"{kills} kills over {number - 1} durable steps, {len(problems)} problems, "
          f"{time.monotonic() - began:.0f} s")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
