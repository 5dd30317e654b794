"""Entity migration policies that override nothing, against no policies at all.

What the hooks of the base class do is what Core Data does of itself, so a mapping model whose entity
mappings all name such a policy must give the very store that it gives without: the same objects
under the same new keys. Every real mapping model is run three times on one seeded store: as it is
but for its policies, with a policy that sees its whole entity, and with one that is cut into small
shards. Their own policies are code that nobody has here; methods of them that expressions call are
left out.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import sys
import tempfile

from . import ground, judge, mapped, tool

ENTRY = re.compile(r"^- ", re.MULTILINE)
POLICY = re.compile(r"^  (policy: .*|type: custom)\n", re.MULTILINE)
CALL = re.compile(r"^    (?P<name>\S+): .*\$entityPolicy.*\n", re.MULTILINE)
# The base class, registered under names of its own.
WHOLE, CUT = "DefaultPolicy", "DefaultShardPolicy"


def variants(text):
    """(without policies, with policies of whole entities, with policies of shards), as texts."""
    plain = CALL.sub("", POLICY.sub("", text))
    head, *entries = ENTRY.split(plain)

    def naming(policy):
        made = []
        for entry in entries:
            first, rest = entry.split("\n", 1)
            made.append(f"- {first}\n  policy: {policy}\n{rest}")
        return head + "".join(made)
    return plain, naming(WHOLE), naming(CUT)


def run_one(folder, number, text, source, destination, rows):
    """(run, digest or None) of one text."""
    mapping = folder / f"{number}.yaml"
    mapping.write_text(text)
    extra = ["--mapping", str(mapping), "--renumber"]
    if number == 2:
        extra += ["--shard-bytes", str(max(1024, rows * 16))]
    run, output = mapped.migrate(folder, str(number), source, destination, extra)
    return run, judge.digest(str(output)) if run.verdict == "migrated" else None


def difference(without, run, policy):
    """What a run with policies has otherwise; None for nothing."""
    problems = tool.contract_problems(run)
    if problems:
        return "BROKEN", f"{policy}: " + "; ".join(problems)
    # A refusal comes with its code, and must with policies, too.
    if (run.verdict, run.result.get("code")) != (without.verdict, without.result.get("code")):
        return "DIFFERENT", f"{policy}: {run.why()}; without: {without.why()}"
    return None


def one(case, rows, seed):
    """(name, class, detail) of one mapping model."""
    name, mapping, source, destination = case
    if not source.exists() or not destination.exists():
        return name, "no model", ""
    with tempfile.TemporaryDirectory() as path:
        folder = pathlib.Path(path)
        text = folder / "mapping.yaml"
        if mapped.as_text("convert", mapping, "--output", text) is None:
            return name, "BROKEN", "mapping convert failed"
        texts = variants(text.read_text())
        refused = ""
        for words, options in mapped.kinds_of_values(destination):
            for left in folder.glob("source.sqlite*"):
                left.unlink()
            problem = mapped.make_store(source, folder / "source.sqlite", rows, seed, options)
            if problem:
                kind = "no source model" if "binary model of Xcode 3" in problem else "BROKEN"
                return name, kind, problem
            first, digest = run_one(folder, 0, texts[0], source, destination, rows)
            problems = tool.contract_problems(first)
            if problems:
                return name, "BROKEN", "; ".join(problems)
            if refused and first.verdict != "migrated":
                continue        # one refusal is compared, the next ones would be the same
            for number, policy in ((1, WHOLE), (2, CUT)):
                run, other = run_one(folder, number, texts[number], source, destination, rows)
                problem = difference(first, run, policy)
                if problem:
                    return name, *problem
                if other != digest:
                    return name, "DIFFERENT", f"{policy}, {words}: digest {other}, without: {digest}"
            if first.verdict == "migrated":
                return name, "equal", words
            refused = first.why()
    return name, "refused alike", refused


def main():
    parser = argparse.ArgumentParser(prog="scripts/default-policies", description=__doc__)
    parser.add_argument("--rows", nargs="+", type=int, default=[3, 60, 1000])
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--every", type=int, default=1, help="only each n-th mapping model")
    options = parser.parse_args()
    if not ground.load_oracle() or not mapped.CORPUS.is_dir():
        ground.skip("default policies", "../shared/corpus-mappings or the oracle is not there")
    ground.use_policies()
    os.environ["GODWIT_FIXTURES"] = ground.fixtures()
    counts, failed = {}, 0
    cases = list(mapped.cases(options.only))[::options.every]
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for rows in options.rows:
            for name, kind, detail in pool.map(
                    one, cases, [rows] * len(cases), [options.seed] * len(cases)):
                counts[kind, rows] = counts.get((kind, rows), 0) + 1
                failed += kind.isupper()
                print(f"{kind:14} {rows:5} {name:62} {detail[:400]}", flush=True)
    print()
    print(ground.table(
        [(kind, *(counts.get((kind, rows), 0) for rows in options.rows))
         for kind in sorted({kind for kind, _ in counts})],
        ("mapping models", *(f"{rows} rows" for rows in options.rows))))
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
