"""Every case of the corpus: `godwit migrate` on a copy, then the oracle on what came out.

Without the third-party corpus the cases are the repository's own, and its own judge decides.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import shutil
import sys
import tempfile
import time

from . import ground, judge, owncorpus, pairs, tool

AS_EXPECTED, OTHER, EXPLAINED, FAILED = "as expected", "other verdict", "explained", "FAILED"


def cases():
    with open(os.path.join(ground.CORPUS, "cases.json")) as file:
        return json.load(file)["cases"]


def sample(found, number, seed):
    """A fixed sample: every case that is no plain lightweight one, then others by seed.

    The rare verdicts are few and the likeliest to break; stores take turns, so that the one
    application with a thousand cases does not fill the sample.
    """
    rare = [c for c in found if c["expected"] != "lightweight" or c["certainty"] != "documented"]
    kept = rare[:max(1, number // 2)]
    chosen = {c["id"] for c in kept}
    by_store = collections.defaultdict(list)
    for case in found:
        if case["id"] not in chosen:
            by_store[case["store"]].append(case)
    rng = random.Random(seed)
    queues = [rng.sample(q, len(q)) for _, q in sorted(by_store.items())]
    while len(kept) < number and any(queues):
        for queue in queues:
            if queue and len(kept) < number:
                kept.append(queue.pop())
    return sorted(kept, key=lambda c: c["id"])


def specs(case, store, folder):
    """((godwit's source model or None, destination), (the oracle's two)).

    `cache` means the model inside the store itself, which is godwit's fallback; `cache:OTHER`
    the one inside another store, of which a copy is given.
    """
    def place(path):
        return os.path.join(ground.CORPUS, path)

    def one(spec, into):
        if spec == "cache":
            return None, "cache:" + place(case["store"])
        if spec.startswith("cache:"):
            other = place(spec[6:])
            return ground.copy_store(other, os.path.join(folder, into)), "cache:" + other
        return place(spec), place(spec)
    a, oracle_a = one(case["source_model"], "source model")
    b, oracle_b = one(case["destination_model"], "destination model")
    return (a, b or store), (oracle_a, oracle_b)


def judge_verdict(case, verdict):
    """(AS_EXPECTED | OTHER | FAILED, text) of the verdict alone."""
    wanted = "migrated" if case["expected"] == "lightweight" else case["expected"]
    if verdict == wanted:
        return AS_EXPECTED, ""
    if case["certainty"] == "unspecified" and verdict in ("migrated", "refused", "needs-mapping"):
        return OTHER, f"{verdict} where the oracle says {wanted}; Apple says nothing"
    if case["certainty"] == owncorpus.RANDOMLY and verdict in ("migrated", "refused", "needs-mapping", "same-model"):
        return AS_EXPECTED, ""
    # Both forbid the migration when the case has reasons of both kinds.
    return FAILED, f"verdict {verdict}, expected {wanted}"


def unspecified_places(case):
    """`Entity.property` of everything the oracle calls unspecified in this case."""
    places = {n.split(":")[0] for n in case.get("notes", [])}
    return places | {r["where"] for r in case.get("reasons", []) if r["certainty"] == "unspecified"}


def judge_output(store, output, source, destination, places=(), excuse=lambda difference: False):
    """([problem], [exception with its reason]) of a migrated store.

    A difference in an unspecified place, and one that `excuse` knows, is an exception.
    """
    problems, exceptions = [], []
    try:
        found = judge.compare(store, output, source, destination)
        if found["refusals"] and places:
            found = judge.compare(store, output, source, destination, anyway=True)
        elif found["refusals"]:
            return [f"migrated, and the oracle refuses: {found['refusals'][0]}"], []
        if found["total"]:
            first = found["first"]
            excused = [d for d in first if any(p in d for p in places) or excuse(d)]
            if len(excused) == len(first) == found["total"]:
                exceptions.append(f"lightweight: excused, differs: {first[0]}")
            else:
                worst = next(d for d in first if d not in excused) if len(excused) < len(first) else first[0]
                problems.append(f"lightweight: {found['total']} differences {found['kinds']}: {worst}")
        text, same_order, differs = judge.schema(output, destination)
        if text != "exact":
            problems.append(f"ddl: {text}: {differs[0]}")
        elif not same_order:
            exceptions.append("ddl: text exact, order of creation differs")
        after = judge.findings(output, destination)
        broken = sorted(set(after) - {"note", judge.VALIDATION})
        if broken:
            before = judge.findings(store, source)
            own = [k for k in broken if after[k] > before.get(k, 0)]
            if own:
                problems.append(f"check: {', '.join(f'{k} ({after[k]})' for k in own)}")
            else:
                exceptions.append(f"check: the source, too, breaks {', '.join(broken)}")
    except judge.Unjudged as reason:
        exceptions.append(f"not judged: {reason}")
    except judge.UNREADABLE as error:
        problems.append(f"the oracle cannot read it: {error or type(error).__name__}")
    return problems, exceptions


def trial(case, workers, timeout, keep):
    """Runs one case in this process; gives a record for the report."""
    folder = tempfile.mkdtemp(prefix="case-", dir=os.environ.get("GODWIT_TRIAL_FOLDER"))
    judge.spent = 0.0
    record = {"id": case["id"], "expected": case["expected"], "certainty": case["certainty"],
              "verdict": None, "problems": [], "exceptions": [], "seconds": 0.0}
    try:
        here = os.path.join(folder, "store")
        store = ground.copy_store(os.path.join(ground.CORPUS, case["store"]), here)
        (a, b), (oracle_a, oracle_b) = specs(case, store, folder)
        out = os.path.join(folder, "out", os.path.basename(store))
        os.makedirs(os.path.dirname(out))
        before = judge.state(store)
        run = tool.run(tool.migrate_command(store, [x for x in (a, b) if x and x != store], b, out, workers),
                       timeout)
        record |= {"verdict": run.verdict, "seconds": run.seconds}
        problems = record["problems"]
        problems += tool.contract_problems(run)
        if run.verdict in tool.EXIT_OF_VERDICT:
            outcome, text = judge_verdict(case, run.verdict)
            if outcome == FAILED:
                problems.append(f"{text}: {run.why()}")
            elif outcome == OTHER:
                record["exceptions"].append(text)
        elif not problems:
            problems.append(run.why())
        problems += [f"source touched: {c}" for c in judge.changes(before, judge.state(store))]
        if run.verdict == "migrated":
            if not os.path.exists(out):
                problems.append("migrated, and there is no output")
            else:
                places = unspecified_places(case) if case["certainty"] == "unspecified" else ()
                bad, excused = judge_output(store, out, oracle_a, oracle_b, places)
                problems += bad
                record["exceptions"] += excused
        else:
            left = [n for n in os.listdir(os.path.dirname(out)) if not n.endswith(".godwit")]
            problems += [f"verdict {run.verdict}, and {n} was written" for n in left]
    except Exception as error:      # one broken trial must not hide the others
        record["problems"].append(f"the trial itself failed: {error!r}")
    finally:
        if keep and record["problems"]:
            record["kept"] = folder
        else:
            shutil.rmtree(folder, ignore_errors=True)
    record["oracle"] = judge.spent
    return record


def outcome_of(record):
    if record["problems"]:
        return FAILED
    if any("where the oracle says" in e for e in record["exceptions"]):
        return OTHER
    return EXPLAINED if record["exceptions"] else AS_EXPECTED


def summary(records):
    counts = collections.Counter((r["expected"], r["certainty"], outcome_of(r)) for r in records)
    columns = (AS_EXPECTED, EXPLAINED, OTHER, FAILED)
    kinds = sorted({k[:2] for k in counts})
    rows = [(e, c, *(counts[(e, c, o)] for o in columns)) for e, c in kinds]
    rows.append(("all", "", *(sum(counts[(e, c, o)] for e, c in kinds) for o in columns)))
    return ground.table(rows, ("expected", "certainty", *columns))


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/corpus", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=1, help="worker processes of each run")
    parser.add_argument("--sample", type=int, metavar="N", help="a fixed sample instead of all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", type=int, metavar="ID")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one case")
    parser.add_argument("--json", metavar="FILE", help="every record, as JSON")
    parser.add_argument("--keep", action="store_true", help="keep the folders of failed cases")
    parser.add_argument("--pairs", action="store_true", help="the pairs of models without a store instead")
    options = parser.parse_args(arguments)
    if options.pairs:
        return pairs.main()
    with ground.fast_workspace("own-corpus") as folder:
        if judge.HAS_ORACLE:
            return judged(cases(), options)
        print(f"corpus: {ground.SHARED} is not there; the repository's own stores, by its own judge", flush=True)
        return judged(owncorpus.cases(folder, options.seed, min(owncorpus.RANDOM, options.sample or owncorpus.RANDOM)),
                      options)


def judged(chosen, options):
    """Runs the cases that the options choose."""
    if options.only:
        chosen = [c for c in chosen if c["id"] in set(options.only)]
    elif options.sample:
        chosen = sample(chosen, options.sample, options.seed)
    ground.godwit()     # built once, before the processes start
    os.environ["GODWIT"] = ground.godwit()
    began = time.monotonic()
    records = []
    with ground.workspace("corpus") as folder:
        if not options.keep:
            os.environ["GODWIT_TRIAL_FOLDER"] = folder
        with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
            waiting = [pool.submit(trial, c, options.workers, options.timeout, options.keep) for c in chosen]
            for number, done in enumerate(concurrent.futures.as_completed(waiting), 1):
                records.append(done.result())
                if number % 100 == 0:
                    failed = sum(bool(r["problems"]) for r in records)
                    ground.say(f"{number} of {len(chosen)} cases, {failed} failed, {time.monotonic() - began:.0f} s")
    return report(sorted(records, key=lambda r: r["id"]), time.monotonic() - began, options)


def report(records, elapsed, options):
    reasons = collections.defaultdict(list)
    for record in records:
        for text in record["exceptions"]:
            reasons[text].append(record["id"])
    if reasons:
        print("Exceptions and their reasons:")
        for text, ids in sorted(reasons.items(), key=lambda item: -len(item[1])):
            print(f"  {len(ids):4}  {text}  (case {', '.join(map(str, ids[:5]))}{' …' if len(ids) > 5 else ''})")
    failed = [r for r in records if r["problems"]]
    if failed:
        print("Failures:")
        for record in failed:
            for text in record["problems"]:
                print(f"  case {record['id']} ({record['expected']}, {record['certainty']}): {text}")
            if "kept" in record:
                print(f"    kept in {record['kept']}")
    print(summary(records))
    oracle, ours = sum(r["oracle"] for r in records), sum(r["seconds"] for r in records)
    print(f"{len(records)} cases, {len(failed)} failed. Wall time {elapsed:.0f} s with {options.jobs} jobs; "
          f"godwit {ours:.0f} s, the oracle {oracle:.0f} s, summed over the jobs.")
    if options.json:
        ground.write_json(options.json, records)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
