"""Damaged stores repaired: every kind of the oracle's `mutate`, by seed, over stores of the corpus.

A repair never crashes, hangs or touches the source. Its output passes the oracle's `check` and
`ddl`, has every row that `sqlite3 .recover` saves, and its account names every row that is lost.
"""
import collections
import functools
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

from . import corpus, ground, judge, mutations, tool

TIMEOUT_SECONDS = 60
MEMORY_BYTES = 4 << 30
# Kinds that damage bytes: what the store held before is what should be there. The others change
# the store through SQL, and what SQLite reads afterwards is what there is.
BYTES = {"page", "header", "zero", "truncate", "empty", "varint"}


def quote(name):
    return '"' + name.replace('"', '""') + '"'


def copied(store, folder):
    """A copy that SQLite may write to: opening a store with a WAL does."""
    os.makedirs(folder)
    for suffix in ("", "-wal", "-journal"):
        if os.path.exists(store + suffix):
            shutil.copyfile(store + suffix, os.path.join(folder, "s" + suffix))
    return os.path.join(folder, "s")


def rows(path, tables):
    """{table: set of Z_PK} of tables whose keys can all be read; the rest is missing."""
    found = {}
    try:
        with sqlite3.connect(path) as db:
            for table in tables:
                try:
                    found[table] = {k for (k,) in db.execute(f"SELECT rowid FROM {quote(table)}")}
                except (sqlite3.Error, OverflowError, UnicodeDecodeError):
                    continue
        db.close()
    except (sqlite3.Error, OSError, UnicodeDecodeError):
        pass
    return found


@functools.cache
def rival():
    """A sqlite3 command that has `.recover`; `SQLITE3` names another one. Debian's, for one, is built without the
    table `sqlite_dbpage`, which it needs. None where there is none."""
    command = os.environ.get("SQLITE3", "sqlite3")
    if not shutil.which(command):
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t")
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE t (a)")
        db.close()
        done = subprocess.run([command, path, ".recover"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
    return command if b"CREATE TABLE" in done.stdout else None


def recovered(store, folder):
    """What `sqlite3 .recover` makes of a store, as a database; None where it makes nothing."""
    if not rival():
        return None
    source, out = copied(store, folder), os.path.join(folder, "recovered")
    with open(os.path.join(folder, "sql"), "w+b") as sql:
        try:
            subprocess.run([rival(), source, ".recover"], stdin=subprocess.DEVNULL, stdout=sql,
                           stderr=subprocess.DEVNULL, timeout=60)
            sql.seek(0)
            subprocess.run([rival(), out], stdin=sql, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, timeout=60)
        except subprocess.TimeoutExpired:
            return None
    return out if os.path.exists(out) else None


def holds(ranges, key):
    return any(low <= key <= high for low, high in ranges or [])


def unaccounted(table, missing, lost):
    """Keys of a table that no line of the account covers."""
    items = [i for i in lost if i["subject"] == "object" and i.get("entity") in table.members]
    return [k for k in missing if not any(holds(i.get("primaryKeys"), k) for i in items)]


def lost_ranges_are_sane(lost):
    return all(low <= high for i in lost for low, high in i.get("primaryKeys") or [])


def trial(case, kind, seed, timeout, keep):
    folder = tempfile.mkdtemp(prefix="repair-", dir=os.environ.get("GODWIT_TRIAL_FOLDER"))
    record = {"case": case["id"], "kind": kind, "seed": seed, "outcome": "failed", "said": "",
              "problems": [], "kept": 0, "recover": 0, "there": 0, "seconds": 0.0, "folder": folder}
    problems = record["problems"]
    try:
        original = os.path.join(ground.CORPUS, case["store"])
        (given, _), (spec, _) = corpus.specs(case, "", folder)
        store = os.path.join(folder, "store", os.path.basename(original))
        os.makedirs(os.path.dirname(store))
        signal.alarm(60)
        record["said"] = str(judge.mutate.run(original, store, seed, kind))
        signal.alarm(0)
        with judge.Store(original) as opened:
            model = judge.check.fit(judge.model(spec), opened)
            layout = judge.Binding(opened, model).layout
        names = [t.name for t in layout.tables]
        before = judge.state(store)
        out = os.path.join(folder, "out", os.path.basename(store))
        os.makedirs(os.path.dirname(out))
        command = [ground.godwit(), "repair", store, "-o", out, "--json", "--models"]
        run = tool.run(command + [given or original], timeout, MEMORY_BYTES)
        record["seconds"] = run.seconds
        if run.hung or run.exit not in (0, 65):
            problems.append(f"hung: {run.hung}, exit {run.exit}: {run.stderr.strip()[-500:]}")
        if tool.CRASH.search(run.stderr):
            problems.append(f"a crash: {run.stderr.strip()[-300:]}")
        if run.result is None:
            problems.append("no result line")
        problems += [f"source touched: {c}" for c in judge.changes(before, judge.state(store))]
        left = [n for n in os.listdir(os.path.dirname(out)) if ".repair-" in n]
        problems += [f"{n} was left" for n in left]
        damaged = rows(copied(store, os.path.join(folder, "read")), names)
        truth = rows(copied(original, os.path.join(folder, "whole")), names)
        if kind not in BYTES:
            truth |= damaged
        other = recovered(store, os.path.join(folder, "recover"))
        theirs = rows(other, names) if other else {}
        theirs = {t: k & truth.get(t, set()) for t, k in theirs.items()}
        record["recover"] = sum(map(len, theirs.values()))
        record["there"] = sum(map(len, truth.values()))
        if run.exit == 0 and not problems:
            record["outcome"] = "repaired"
            judge_output(record, run.result, out, spec, layout, truth, theirs)
        elif run.exit == 65:
            record["outcome"] = "nothing left"
            if record["recover"]:
                problems.append(f"65, and .recover saves {record['recover']} rows: {run.why()}")
            if os.listdir(os.path.dirname(out)):
                problems.append("65, and something was written")
    except Exception as error:
        problems.append(f"the trial itself failed: {error!r}")
    finally:
        signal.alarm(0)
        if not (keep and problems):
            shutil.rmtree(folder, ignore_errors=True)
            record.pop("folder")
    return record


def judge_output(record, result, out, spec, layout, truth, theirs):
    problems = record["problems"]
    signal.alarm(120)
    found = judge.findings(out, spec)
    signal.alarm(0)
    bad = sorted(set(found) - {"note", judge.VALIDATION})
    if bad:
        problems.append(f"the output breaks {', '.join(bad)}")
    shape, in_order, differs = judge.schema(out, spec)
    if shape != "exact" or not in_order:
        problems.append(f"ddl: {shape}, in order: {in_order}: {differs[:2]}")
    verified = tool.run([ground.godwit(), "verify", out, "--json"], 60, MEMORY_BYTES)
    if verified.exit:
        problems.append(f"verify: exit {verified.exit}")
    ours = rows(out, [t.name for t in layout.tables])
    if not lost_ranges_are_sane(result["lost"]):
        problems.append("the account has a range that ends before it begins")
    for table in layout.tables:
        mine, there = ours.get(table.name, set()), truth.get(table.name, set())
        record["kept"] += len(mine & there)
        fewer = theirs.get(table.name, set()) - mine
        if len(mine & there) < len(theirs.get(table.name, set())):
            problems.append(f"{table.name}: .recover saves {len(fewer)} rows more, Z_PK {sorted(fewer)[:5]}")
        open_keys = unaccounted(table, sorted(there - mine), result["lost"])
        if open_keys:
            problems.append(f"{table.name}: {len(open_keys)} lost rows are in no line of the account, "
                            f"Z_PK {open_keys[:5]}")
    counted = sum(k["count"] for k in result["kept"])
    if counted != sum(map(len, ours.values())):
        problems.append(f"the account counts {counted} objects, the output has {sum(map(len, ours.values()))}")


def summary(records):
    lines = []
    for kind in sorted({r["kind"] for r in records}):
        own = [r for r in records if r["kind"] == kind]
        lines.append((kind, sum(r["outcome"] == "repaired" for r in own),
                      sum(r["outcome"] == "nothing left" for r in own), sum(bool(r["problems"]) for r in own),
                      sum(r["there"] for r in own), sum(r["recover"] for r in own), sum(r["kept"] for r in own)))
    lines.append(("all", *(sum(line[i] for line in lines) for i in range(1, 7))))
    return ground.table(lines, ("kind", "repaired", "nothing left", "PROBLEM", "rows there", ".recover", "kept"))


def main(arguments=None):
    options = mutations.options_of("scripts/repair", __doc__, TIMEOUT_SECONDS).parse_args(arguments)
    ground.skip_unless_shared("repair")
    if not rival():
        print("repair: the comparison with `sqlite3 .recover` is skipped, since no sqlite3 command here has it")
    by_id = {c["id"]: c for c in corpus.cases()}
    chosen = [by_id[i] for i in options.cases or mutations.CASES[:options.stores]]
    began = time.monotonic()
    records, bad = mutations.damaged(chosen, options, trial, ground.fast_workspace("repair"))
    print(summary(records))
    slowest = max(r["seconds"] for r in records)
    reached = collections.Counter(r["outcome"] for r in records)
    print(f"{len(records)} damaged stores of {len(chosen)} stores, {reached['repaired']} repaired, {len(bad)} problems, "
          f"slowest repair {slowest:.1f} s, wall time {time.monotonic() - began:.0f} s")
    if options.json:
        ground.write_json(options.json, records)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
