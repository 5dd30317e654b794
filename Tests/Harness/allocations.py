"""How many allocations a row costs: the same migration of a store and of one with twice its rows.

Both have as many tables, indexes and shards, so that what the second allocates beyond the first it allocates for its
rows. Buffers that double and progress that is told by the clock are among it.
"""
import argparse
import functools
import os
import shutil
import subprocess
import sys

from . import ground, owncorpus, preload, tool

version = functools.partial(owncorpus.version, "Fixtures/Bench")
# Everything is computed; all but one table is carried; expressions and relationships by a mapping model.
WAYS = {"lightweight": ("Bench", "Bench 2", None), "carried": ("Bench 5", "Bench 6", None),
        "mapped": ("Bench", "Bench 3", "Bench.expressions.yaml")}
# For 100 000 rows. Progress is told every 32 768 rows and by the clock, and costs some; pairs of mapped join tables are sorted by SQLite.
LIMITS = {"lightweight": 500, "carried": 500, "mapped": 50_000}
# Sixteen shards are of 2 MiB at least: from there on their number stays.
OBJECTS = (500_000, 1_000_000)
PARTS = {"Customer": 10, "Product": 10, "Purchase": 35, "Review": 45}


def make(folder, name, objects):
    path = os.path.join(folder, f"{name}-{objects}", "store.sqlite")
    os.makedirs(os.path.dirname(path))
    words = [ground.fixtures(), "make-store", "--model", version(name), "--output", path, "--rows", "200", "--nulls", "0.05",
             "--valid-for", version("Bench 2") if name == "Bench" else version("Bench 6"), "--ascii", "--largest", "30000"]
    for entity, part in PARTS.items():
        words += ["--entity-rows", f"{entity}={objects * part // 100}"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return path


def count(store, way, folder, library):
    """(allocations of all processes, rows, units) of one migration."""
    _, new, mapping = WAYS[way]
    told, out = os.path.join(folder, "told"), os.path.join(folder, "out.sqlite")
    shutil.rmtree(told, ignore_errors=True)
    os.makedirs(told)
    extra = ["--mapping", os.path.join(ground.ROOT, "Fixtures", mapping)] if mapping else []
    run = tool.run(tool.migrate_command(store, [version(WAYS[way][0]), version(new)], version(new), out, 1, extra=extra),
                   env=tool.environment(LD_PRELOAD=library, GODWIT_ALLOCATIONS=told))
    if run.verdict != "migrated":
        sys.exit(f"{way}: exit {run.exit}: {run.why()}")
    os.unlink(out)
    found = 0
    for name in os.listdir(told):
        with open(os.path.join(told, name), "rb") as file:
            found += int.from_bytes(file.read(), sys.byteorder)
    units = sum(stage["units"] for stage in run.result["stages"])
    # Pairs of join tables are rows, too, and none of the result's.
    return found, max(stage["rows"] for stage in run.result["stages"]), units


def main():
    parser = argparse.ArgumentParser(prog="scripts/allocations", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="of which the least counts; the first that is within the limit is the last")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    given = parser.parse_args()
    failed, lines = False, []
    with ground.workspace("allocations") as folder:
        library = preload.shim(folder, "allocations")
        stores = {}
        for way in given.ways:
            old = WAYS[way][0]
            stores[old] = stores.get(old) or [make(folder, old, objects) for objects in OBJECTS]
            runs = []
            for _ in range(given.runs):
                runs.append([count(store, way, folder, library) for store in stores[old]])
                (few, rows, units), (many, more, other) = map(min, zip(*runs))
                each = (many - few) / (more - rows) * 100_000
                if each <= LIMITS[way]:
                    break
            failed = failed or each > LIMITS[way]
            lines.append((way, rows, units, few, more, other, many, f"{each:.1f}"))
    print(ground.table(lines, ("way", "rows", "units", "allocations", "rows", "units", "allocations", "for 100 000 rows")))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
