"""Runs every real mapping model on seeded stores of its source model, and lets the oracle judge.

A mapping model without custom code must migrate, or be refused for what the seeded rows
themselves lack (a required value that the mapping leaves empty): then a store without NULLs is
tried. One with policies must be refused by name.
"""
import argparse
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from . import ground, judge, tool

CORPUS = pathlib.Path(ground.SHARED) / "corpus-mappings"
POLICY = re.compile(r"the policy (\S+) is not registered")
SELECTOR = re.compile(r"missing-policy-selector in .*?: .*?(\w+:[\w:]*)")


def cases(only):
    for folder in sorted(CORPUS.iterdir()):
        if not folder.is_dir() or (only and not any(o in folder.name for o in only)):
            continue
        mapping = folder / "mapping.xcmappingmodel"
        mapping = mapping if mapping.exists() else folder / "mapping.cdm"
        yield folder.name, mapping, folder / "source.xcdatamodel", folder / "destination.xcdatamodel"


def make_store(model, path, rows, seed, nulls):
    command = [ground.fixtures(), "make-store", "--model", str(model), "--output", str(path),
               "--rows", str(rows), "--seed", str(seed), "--nulls", str(nulls)]
    made = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return None if made.returncode == 0 else made.stderr.strip().splitlines()[-1:]


def migrate(folder, mapping, source, destination, extra=()):
    output = folder / "destination.sqlite"
    for left in folder.glob("destination.sqlite*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    command = tool.migrate_command(
        str(folder / "source.sqlite"), [str(source)], str(destination), str(output), 1,
        extra=["--mapping", str(mapping), *extra])
    return tool.run(command, timeout=300), output


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


def inferred_equals(folder, source, destination, digest):
    """Whether inference gives the same objects; None where it is refused."""
    output = folder / "inferred.sqlite"
    run = tool.run(tool.migrate_command(
        str(folder / "source.sqlite"), [str(source)], str(destination), str(output), 1))
    return judge.digest(str(output)) == digest if run.verdict == "migrated" else None


def is_automatic(mapping, destination):
    """True when nothing in the file is written by hand and every property and entity of the
    destination has a row: what has none keeps its default. Leftovers may hide both."""
    file = mapping / "xcmapping.xml"
    if not file.exists():
        return False
    text = file.read_text(errors="replace")
    if re.search(r'name="(valueexpressiondata|sourcefilterpredicatestring|sourcekeypath'
                 r'|sourcemappingname)"', text):
        return False
    model = (destination / "contents").read_text(errors="replace")
    names = re.findall(r'<(?:entity|attribute|relationship)\s[^>]*?name="([^"]+)"', model)
    return all(f">{name}<" in text for name in names)


def one(name, mapping, source, destination, rows, seed):
    """(class, detail) of one mapping model."""
    if not source.exists() or not destination.exists():
        return "no model", "the corpus lacks a model of this pair"
    refusal = ""
    for nulls in (0.15, 0.0):
        with tempfile.TemporaryDirectory() as path:
            folder = pathlib.Path(path)
            problem = make_store(source, folder / "source.sqlite", rows, seed, nulls)
            if problem:
                return "no store", " ".join(problem)
            run, output = migrate(folder, mapping, source, destination)
            problems = tool.contract_problems(run)
            if problems:
                return "BROKEN", "; ".join(problems)
            if run.verdict == "needs-mapping":
                names = lacking(run)
                return ("needs code", ", ".join(names)) if names else ("REFUSED", run.why())
            if run.verdict == "refused":
                codes = sorted({f.get("code") for f in run.result.get("findings", [])
                                if f.get("code")} | {run.result.get("code")})
                refusal = f"{codes} {run.why(200)}"
                continue
            if run.verdict != "migrated":
                return "BROKEN", run.why()
            problems = judged(output, destination)
            first = judge.digest(str(output))
            is_whole = not any("no entity mapping" in n for n in run.result.get("notes", []))
            # Renumbering, small shards: the same objects whatever the cut.
            run, output = migrate(folder, mapping, source, destination,
                                  ["--shard-bytes", "4096"])
            if run.verdict != "migrated" or judge.digest(str(output)) != first:
                problems.append(f"another result with small shards: {run.why()}")
            run, output = migrate(folder, mapping, source, destination, ["--renumber"])
            if run.verdict != "migrated":
                problems.append(f"--renumber: {run.why()}")
            else:
                problems += [f"--renumber: {p}" for p in judged(output, destination)]
            same = inferred_equals(folder, source, destination, first)
            if same is False and is_whole and is_automatic(mapping, destination):
                problems.append("automatic, and not what is inferred")
            if problems:
                return "WRONG", "; ".join(problems)
            note = {True: "= inferred ", False: "not as inferred ", None: ""}[same]
            note += "" if nulls else f"with NULLs: {refusal}"
            return "migrated", note
    return "rows forbid", refusal


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if not ground.load_oracle() or not CORPUS.is_dir():
        print("skipped: ../shared/corpus-mappings or the oracle is not there")
        return 0
    counts, table = collections.Counter(), []
    for name, mapping, source, destination in cases(arguments.only):
        kind, detail = one(name, mapping, source, destination, arguments.rows, arguments.seed)
        counts[kind] += 1
        table.append({"mapping": name, "class": kind, "detail": detail})
        print(f"{kind:12} {name:62} {detail[:400]}", flush=True)
    print(", ".join(f"{k}: {v}" for k, v in sorted(counts.items())))
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(table, indent=1))
    return 1 if any(k in counts for k in ("BROKEN", "WRONG", "REFUSED")) else 0


if __name__ == "__main__":
    sys.exit(main())
