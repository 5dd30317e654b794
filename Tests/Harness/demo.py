"""A small fleet of Recipes stores, migrated by a pipeline: what a first look shows."""
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
    pipeline = os.path.join(options.directory, "pipeline.yaml")
    with open(pipeline, "w", encoding="utf-8") as file:
        file.write(f"""name: demo
stores: {{ roots: ., include: "recipes-*/*/Recipes.sqlite" }}
models: {ground.MODELS}
destination: {ground.DESTINATION}
report: {{ html: report.html }}
""")
    run = tool.run([ground.godwit(), "run", pipeline, "--json"], timeout=600)
    results = {x["store"]: x for x in run.lines if isinstance(x, dict) and x.get("event") == "result" and "store" in x}
    report = []
    for store in stores:
        result = results.get(os.path.realpath(store), {})
        report.append((os.path.relpath(store, options.directory), result.get("source", ""),
                       result.get("verdict", "none"), rows_in(store), f"{result.get('seconds', 0) * 1000:.0f}"))
        for reason in result.get("reasons") or []:
            ground.say(f"{store}: {reason.get('message')}")
    failed = sum(row[2] not in ("migrated", "same-model") for row in report)
    print(ground.table(report, ("store", "version found", "verdict", "rows", "ms")))
    where = os.path.relpath(options.directory)
    print(f"{len(report)} stores, {failed} failed. They lie in {where}, and those that were migrated have a backup "
          "beside them.\n"
          f"The report of the run is {os.path.join(where, 'report.html')}.")
    return 1 if failed or run.exit else 0


if __name__ == "__main__":
    sys.exit(main())
