"""A small fleet of Recipes stores, migrated: what a first look shows."""
import argparse
import os
import shutil
import sqlite3
import sys

from . import ground, tool

# What lies in the fleet, and where it should end.
FLEET = (("1.0", False, 3, 400), ("1.1", False, 2, 1_000), ("1.0", True, 2, 5_000), ("2.0", False, 1, 300))


def rows_in(store):
    """Objects in the entity tables; the store is opened without touching it."""
    mode = "mode=ro" if os.path.exists(store + "-wal") else "immutable=1"
    database = sqlite3.connect(f"file:{store}?{mode}", uri=True)
    try:
        names = [n for (n,) in database.execute(
            "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c ON c.name = 'Z_ENT' "
            "WHERE m.type = 'table' AND m.name <> 'Z_PRIMARYKEY'")]
        return sum(database.execute(f'SELECT count(*) FROM "{n}"').fetchone()[0] for n in names)
    finally:
        database.close()


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("--directory", default=os.path.join(ground.ROOT, ".build", "demo"))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    shutil.rmtree(options.directory, ignore_errors=True)
    stores = []
    for number, (version, wal, count, rows) in enumerate(FLEET):
        where = os.path.join(options.directory, f"recipes-{version}{'-wal' if wal else ''}")
        stores += ground.make_fleet(where, count, rows, options.seed + number, version, wal)
    report, failed = [], 0
    for store in stores:
        run = tool.run(tool.migrate_command(store, [ground.MODELS], ground.DESTINATION))
        result = run.result or {}
        failed += run.exit != 0
        found = result.get("source") or result.get("version") or result.get("from") or ""
        report.append((os.path.relpath(store, options.directory), found, run.verdict or f"exit {run.exit}",
                       rows_in(store), f"{run.seconds * 1000:.0f}"))
        for text in run.messages if run.exit else []:
            ground.say(f"{store}: {text}")
    print(ground.table(report, ("store", "version found", "verdict", "rows", "ms")))
    print(f"{len(report)} stores, {failed} failed. They lie in {os.path.relpath(options.directory)}, "
          "each with a backup of what it was.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
