"""Runs every real mapping model on seeded stores of its source model, and lets the oracle judge.

A mapping model without custom code must migrate, at every size, whatever the shards and with new
keys; where its own rows forbid that (Core Data's 1570, 1610 …), which is shown first, stores with
values that the destination allows must. What inference would say of the same property is compared
with what the mapping model gave. One with policies must be refused by name.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from . import differential, filled, ground, judge, tool

CORPUS = pathlib.Path(ground.SHARED) / "corpus-mappings"
POLICY = re.compile(r"the policy (\S+) is not registered")
SELECTOR = re.compile(r"missing-policy-selector in .*?: .*?(\w+:[\w:]*)")
FAILURES = ("BROKEN", "WRONG", "REFUSED", "EMPTY")


def cases(only):
    for folder in sorted(CORPUS.iterdir()):
        if not folder.is_dir() or (only and not any(o in folder.name for o in only)):
            continue
        mapping = folder / "mapping.xcmappingmodel"
        mapping = mapping if mapping.exists() else folder / "mapping.cdm"
        yield folder.name, mapping, folder / "source.xcdatamodel", folder / "destination.xcdatamodel"


def kinds_of_values(destination):
    """How stores are made, until one's rows allow the migration: (words, options)."""
    valid = ["--valid-for", str(destination)]
    yield "any values", ["--nulls", "0.15"]
    yield "valid for the destination", ["--nulls", "0.15", *valid]
    yield "valid, integers to 1000", ["--nulls", "0.15", "--largest", "1000", *valid]
    yield "valid, integers to 1000, no NULLs", ["--nulls", "0", "--largest", "1000", *valid]


def make_store(model, path, rows, seed, options):
    command = [ground.fixtures(), "make-store", "--model", str(model), "--output", str(path),
               "--rows", str(rows), "--seed", str(seed), *options]
    made = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return None if made.returncode == 0 else " ".join(made.stderr.strip().splitlines()[-1:])


def migrate(folder, name, source, destination, extra=()):
    """(run, path of its output), the output of an earlier run deleted."""
    output = folder / name / "destination.sqlite"
    shutil.rmtree(folder / name, ignore_errors=True)
    (folder / name).mkdir()
    command = tool.migrate_command(
        str(folder / "source.sqlite"), [str(source)], str(destination), str(output), 1, extra=extra)
    return tool.run(command, timeout=600), output


def lacking(run):
    """Policies and selectors that a refusal names."""
    text = " ".join(run.messages)
    return sorted(set(POLICY.findall(text)) | set(SELECTOR.findall(text)))


def judged(output, destination):
    """What the oracle holds against a destination."""
    problems = []
    kind, ordered, differs = judge.schema(str(output), str(destination))
    if kind != "exact" or not ordered:
        problems.append(f"ddl {kind}: {differs[:2]}")
    found = judge.findings(str(output), str(destination))
    bad = judge.unsound(found) + [k for k in (judge.VALIDATION,) if found.get(k)]
    if bad:
        problems.append("check: " + ", ".join(f"{k} {found.get(k)}" for k in bad))
    return problems


def as_text(*arguments):
    """What a `godwit mapping` command writes, or None where it refuses."""
    made = subprocess.run([ground.godwit(), "mapping", *map(str, arguments)], capture_output=True,
                          text=True, timeout=60)
    return made.stdout if made.returncode == 0 else None


def against_inference(folder, mapping, source, destination, output, renumbered):
    """{class, counts, skipped, problems}: the destination beside the inferred one."""
    run, inferred = migrate(folder, "inferred", source, destination)
    if run.verdict == "same-model":
        return {"class": "nothing to infer: the models are compatible"}
    if run.verdict != "migrated":
        return {"class": "inference impossible", "why": run.why(160)}
    text = folder / "mapping.yaml"
    text.unlink(missing_ok=True)
    if as_text("convert", mapping, "--output", text) is None:
        return {"class": "not compared", "problems": ["mapping convert failed"]}
    written, inference = text.read_text(), as_text("infer", source, destination)
    if inference is None:
        return {"class": "not compared", "problems": ["inferred, and mapping infer refuses"]}
    # The judge of the inferred destination is the oracle, so that of the mapped one is, too.
    judged_by = judge.compare(str(folder / "source.sqlite"), str(inferred), str(source), str(destination))
    problems = [] if judged_by["total"] == 0 else [f"the oracle, of the inferred one: {judged_by}"]
    others = (str(inferred), str(source), str(destination), written, inference)
    found = differential.compare(str(output), *others)
    problems += found.differences[:5]
    if found.is_whole and found.keeps_keys and judge.digest(str(output)) != judge.digest(str(inferred)):
        problems.append("everything is automatic, and the digest is not that of the inferred one")
    again = differential.compare(str(renumbered), *others)
    problems += [f"--renumber: {d}" for d in again.differences[:5]]
    return {"class": "all automatic" if found.is_whole else "partly automatic",
            "counts": dict(found.counts), "skipped": dict(found.skipped), "problems": problems}


def one(case, rows, seed):
    """The record of one mapping model at one size."""
    name, mapping, source, destination = case
    record = {"mapping": name, "rows": rows, "refused first": []}
    if not source.exists() or not destination.exists():
        return record | {"class": "no model", "detail": "the corpus lacks a model of this pair"}
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        for words, options in kinds_of_values(destination):
            for left in folder.glob("source.sqlite*"):
                left.unlink()
            problem = make_store(source, folder / "source.sqlite", rows, seed, options)
            if problem:
                kind = "no source model" if "binary model of Xcode 3" in problem else "BROKEN"
                return record | {"class": kind, "detail": problem}
            run, output = migrate(folder, "mapped", source, destination, ["--mapping", str(mapping)])
            problems = tool.contract_problems(run)
            if problems:
                return record | {"class": "BROKEN", "detail": "; ".join(problems)}
            if run.verdict == "needs-mapping":
                names = lacking(run)
                return record | {"class": "needs code" if names else "REFUSED",
                                 "detail": ", ".join(names) or run.why()}
            if run.verdict == "refused":
                codes = {f.get("code") for f in run.result.get("findings", [])} | {run.result.get("code")}
                record["refused first"].append(
                    {"values": words, "codes": sorted(c for c in codes if c), "why": run.why(200)})
                continue
            if run.verdict != "migrated":
                return record | {"class": "BROKEN", "detail": run.why()}
            return record | {"values": words} | examined(folder, case, output, rows)
    return record | {"class": "REFUSED", "detail": record["refused first"][-1]["why"]}


def examined(folder, case, output, rows):
    """What is to be said of a destination that was written."""
    name, mapping, source, destination = case
    found = {"class": "migrated"}
    counts, lacks = filled.census(str(folder / "source.sqlite"), str(source))
    found["census"] = dict(counts)
    problems = judged(output, destination)
    first = judge.digest(str(output))
    # Small shards and the other assembly: the same objects whatever the way. New keys: judged.
    extra = ["--mapping", str(mapping)]
    run, other = migrate(folder, "small", source, destination,
                         [*extra, "--shard-bytes", str(max(4096, rows * 32))])
    if run.verdict != "migrated" or judge.digest(str(other)) != first:
        problems.append(f"another result with small shards: {run.why()}")
    run, renumbered = migrate(folder, "renumbered", source, destination, [*extra, "--renumber"])
    if run.verdict != "migrated":
        problems.append(f"--renumber: {run.why()}")
        renumbered = output
    else:
        problems += [f"--renumber: {p}" for p in judged(renumbered, destination)]
    found["inference"] = against_inference(folder, mapping, source, destination, output, renumbered)
    problems += found["inference"].pop("problems", [])
    if problems:
        return found | {"class": "WRONG", "detail": "; ".join(problems)}
    if rows >= 50 and lacks:
        return found | {"class": "EMPTY", "detail": "; ".join(lacks)}
    return found


def told(record):
    """The line of one record."""
    detail = record.get("detail", "")
    if record["class"] in ("migrated", "EMPTY"):
        inference = record["inference"]
        detail = (detail and detail + "; ") + inference["class"]
        counts = inference.get("counts", {})
        if counts:
            detail += (f": {counts.get('objects', 0)} objects, {counts.get('values', 0)} values, "
                       f"{counts.get('pairs', 0)} pairs equal")
        if inference.get("skipped"):
            detail += "; not compared: " + "; ".join(
                f"{', '.join(names[:4])}{' …' if len(names) > 4 else ''} ({reason})"
                for reason, names in sorted(inference["skipped"].items()))
        refused = record["refused first"]
        if refused:
            codes = sorted({c for r in refused for c in r["codes"]})
            detail += f"; with {record['values']}, after {codes}"
    return f"{record['class']:12} {record['rows']:5} {record['mapping']:62} {detail[:400]}"


def report(records):
    """The tables at the end."""
    sizes = sorted({r["rows"] for r in records})
    classes = sorted({r["class"] for r in records})
    count = lambda **wanted: sum(all(r.get(k) == v for k, v in wanted.items()) for r in records)
    print(ground.table([(c, *(count(**{"class": c, "rows": s}) for s in sizes)) for c in classes],
                       ("mapping models", *(f"{s} rows" for s in sizes))))
    done = [r for r in records if "census" in r]
    print("\nwhat the migrated stores hold, all mapping models together")
    print(ground.table([(k, *(sum(r["census"].get(k, 0) for r in done if r["rows"] == s) for s in sizes))
                        for k in filled.KINDS], ("", *(f"{s} rows" for s in sizes))))
    print("\nbeside the inferred migration (the oracle's `lightweight` judges that one)")
    kinds = sorted({r["inference"]["class"] for r in done})
    rows = [(k, *(sum(r["inference"]["class"] == k for r in done if r["rows"] == s) for s in sizes)) for k in kinds]
    for part in ("objects", "properties", "values", "pairs", "ordered lists"):
        rows.append((f"  {part} equal", *(sum(r["inference"].get("counts", {}).get(part, 0)
                                              for r in done if r["rows"] == s) for s in sizes)))
    reasons = sorted({w for r in done for w in r["inference"].get("skipped", {})})
    for reason in reasons:
        rows.append((f"  not compared: {reason}", *(sum(len(r["inference"].get("skipped", {}).get(reason, ()))
                                                         for r in done if r["rows"] == s) for s in sizes)))
    print(ground.table(rows, ("mapping models", *(f"{s} rows" for s in sizes))))
    refused = collections.Counter((c, r["rows"]) for r in records
                                  for c in {c for f in r["refused first"] for c in f["codes"]})
    if refused:
        print("\nrefused first, for rows that Core Data would refuse")
        print(ground.table([(code, *(refused[code, s] for s in sizes))
                            for code in sorted({c for c, _ in refused})],
                           ("code", *(f"{s} rows" for s in sizes))))


def main():
    parser = argparse.ArgumentParser(prog="scripts/mapped", description=__doc__)
    parser.add_argument("--rows", nargs="+", type=int, default=[3, 60, 2000])
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--every", type=int, default=1, help="every Nth mapping model only")
    parser.add_argument("--json")
    options = parser.parse_args()
    if not ground.load_oracle() or not CORPUS.is_dir():
        ground.skip("mapped migrations", "../shared/corpus-mappings or the oracle is not there")
    os.environ["GODWIT"], os.environ["GODWIT_FIXTURES"] = ground.godwit(), ground.fixtures()
    records = []
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        # A size at a time; what was refused for its policies is refused at any size.
        left = list(cases(options.only))[::options.every]
        for rows in options.rows:
            for record in pool.map(one, left, [rows] * len(left), [options.seed] * len(left)):
                records.append(record)
                print(told(record), flush=True)
            left = [c for c in left if any(r["mapping"] == c[0] and "values" in r for r in records)]
    print()
    report(records)
    if options.json:
        ground.write_json(options.json, records)
    bad = [r for r in records if r["class"] in FAILURES]
    print(f"\n{len(records)} trials, {len(bad)} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
