"""Damaged stores: every kind of the oracle's `mutate`, by seed, over stores of the corpus.

A run may refuse or migrate, but never crash, hang, touch the source, or succeed on a store that
is not sound in a way Core Data would not tolerate.
"""
import argparse
import collections
import concurrent.futures
import os
import resource
import shutil
import signal
import sys
import tempfile
import time

from . import corpus, diskfull, ground, judge, owncorpus, tool

# Cases of the corpus, for variety: ordered many-to-many with a WAL; inheritance and uniqueness;
# external binary data and a to-many without inverse; history; a WAL with inheritance and fetch
# indexes. The rest for a longer run.
CASES = [30, 1, 271, 62, 63, 39, 12, 945, 93, 15]
TIMEOUT_SECONDS = 30
# Address space of each process of a run: a crafted size must not become an allocation.
MEMORY_BYTES = 4 << 30


# Contract §6: a damaged store is 65. Only a file that cannot be opened as it lies may be more.
FITTING = {"locked": {0, 65, 73, 74}}


class Slow(Exception):
    """The oracle took too long over a damaged store."""


def _alarm(*_):
    raise Slow()


def prepare():
    """The oracle, too, reads hostile files here: it gets limits of its own."""
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    signal.signal(signal.SIGALRM, _alarm)


def judge_success(before, after, problems):
    """Problems of a run that succeeded, from the classes found on the source and the output."""
    found = list(problems)
    if judge.unsound(before):
        found.append(f"success, and the source breaks {', '.join(judge.unsound(before))}")
    if after is not None and judge.unsound(after):
        found.append(f"success, and the output breaks {', '.join(judge.unsound(after))}")
    return found


def trial(case, kind, seed, timeout, keep):
    """One damaged store; gives a record."""
    folder = tempfile.mkdtemp(prefix="mutation-", dir=os.environ.get("GODWIT_TRIAL_FOLDER"))
    record = {"case": case["id"], "kind": kind, "seed": seed, "outcome": "failed", "said": "",
              "problems": [], "validation only": False, "seconds": 0.0, "folder": folder}
    problems = record["problems"]
    try:
        (a, b), (oracle_a, oracle_b) = corpus.specs(case, "", folder)
        here = os.path.join(folder, "store")
        os.makedirs(here)
        store = os.path.join(here, os.path.basename(case["store"]))
        signal.alarm(60)
        record["said"] = str(judge.mutate.run(os.path.join(ground.CORPUS, case["store"]), store, seed, kind))
        signal.alarm(0)
        before = judge.state(store)
        out = os.path.join(folder, "out", os.path.basename(store))
        os.makedirs(os.path.dirname(out))
        # `cache` is the undamaged model for the oracle; godwit has only the damaged one.
        run = tool.run(tool.migrate_command(store, [x for x in (a, b) if x], b, out, 1), timeout, MEMORY_BYTES)
        record["seconds"] = run.seconds
        problems += tool.contract_problems(run)
        if not run.hung and run.exit >= 0 and run.exit not in FITTING.get(kind, {0, 65}):
            problems.append(f"exit {run.exit} does not fit a damaged store: {run.why()}")
        problems += [f"source touched: {c}" for c in judge.changes(before, judge.state(store))]
        if run.exit == 0:
            record["outcome"] = "succeeded"
            signal.alarm(120)
            try:
                damage = judge.findings(store, oracle_a)
                after, bad = None, []
                if run.verdict == "migrated":
                    if not os.path.exists(out):
                        bad.append("migrated, and there is no output")
                    else:
                        after = judge.findings(out, oracle_b)
                        places = corpus.unspecified_places(case) if case["certainty"] == "unspecified" else ()
                        bad, _ = corpus.judge_output(store, out, oracle_a, oracle_b, places)
                        # `ddl` and the rest of `check` are the corpus's business.
                        bad = [p for p in bad if not p.startswith(("ddl:", "check:"))]
                problems += judge_success(damage, after, bad)
                record["validation only"] = judge.VALIDATION in damage
            except Slow:
                problems.append("succeeded on a store the oracle could not read in 120 s")
            finally:
                signal.alarm(0)
        else:
            record["outcome"] = "refused" if run.exit == 65 else f"exit {run.exit}"
            problems += [f"exit {run.exit}, and {n} was written"
                         for n in os.listdir(os.path.dirname(out)) if not n.endswith(".godwit")]
    except Exception as error:
        problems.append(f"the trial itself failed: {error!r}")
    finally:
        signal.alarm(0)
        if not (keep and problems):
            shutil.rmtree(folder, ignore_errors=True)
            record.pop("folder")
    return record


def summary(records):
    outcomes = ["succeeded", "refused"]
    outcomes += sorted({r["outcome"] for r in records} - set(outcomes))
    counts = collections.Counter((r["kind"], "PROBLEM" if r["problems"] else r["outcome"]) for r in records)
    kinds = sorted({r["kind"] for r in records})
    columns = [o for o in outcomes if o != "failed"] + ["PROBLEM"]
    rows = [(k, *(counts[(k, o)] for o in columns)) for k in kinds]
    rows.append(("all", *(sum(counts[(k, o)] for k in kinds) for o in columns)))
    return ground.table(rows, ("kind", *columns))


def options_of(program, description, seconds=TIMEOUT_SECONDS):
    """The options of a trial over damaged stores."""
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--stores", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+")
    parser.add_argument("--cases", nargs="+", type=int, metavar="ID", help="instead of --stores")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=seconds)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--keep", action="store_true", help="keep the folders of failed trials")
    return parser


def damaged(chosen, options, attempt, workspace):
    """Damages the stores of the cases in every way, and gives the records of the attempts, and those with problems,
    which are printed."""
    kinds = options.kinds or sorted(judge.mutate.KINDS)
    os.environ["GODWIT"] = ground.godwit()
    records = []
    with workspace as folder:
        if not options.keep:
            os.environ["GODWIT_TRIAL_FOLDER"] = folder
        with concurrent.futures.ProcessPoolExecutor(options.jobs, initializer=prepare) as pool:
            waiting = [pool.submit(attempt, c, k, s, options.timeout, options.keep) for c in chosen for k in kinds
                       for s in range(options.first_seed, options.first_seed + options.seeds)]
            for number, done in enumerate(concurrent.futures.as_completed(waiting), 1):
                records.append(done.result())
                if number % 200 == 0:
                    ground.say(f"{number} of {len(waiting)}, {sum(bool(r['problems']) for r in records)} with problems")
    records.sort(key=lambda r: (r["case"], r["kind"], r["seed"]))
    bad = [r for r in records if r["problems"]]
    for record in bad:
        for text in record["problems"]:
            print(f"case {record['case']} {record['kind']} seed {record['seed']}: {text}  [{record['said'][:120]}]"
                  + (f" kept in {record['folder']}" if "folder" in record else ""))
    return records, bad


def main(arguments=None):
    parser = options_of("scripts/mutations", __doc__)
    parser.add_argument("--disk-full", action="store_true", help="the full-disk trial instead (needs root)")
    options = parser.parse_args(arguments)
    if options.disk_full:
        return diskfull.main()
    with ground.fast_workspace("own-corpus") as folder:
        if judge.HAS_ORACLE:
            by_id = {c["id"]: c for c in corpus.cases()}
            return judged([by_id[i] for i in options.cases or CASES[:options.stores]], options)
        print(f"mutations: {ground.SHARED} is not there; the repository's own stores, damage and judge", flush=True)
        return judged(owncorpus.varied(folder, options.stores), options)


def judged(chosen, options):
    """Damages the stores of the cases and migrates them."""
    began = time.monotonic()
    records, bad = damaged(chosen, options, trial, ground.workspace("mutations"))
    print(summary(records))
    loose = sum(r["validation only"] and r["outcome"] == "succeeded" for r in records)
    if loose:
        print(f"{loose} succeeded on rows that break validation rules of the source model; "
              "a lightweight migration carries those")
    slowest = max(records, key=lambda r: r["seconds"])
    print(f"{len(records)} damaged stores of {len(chosen)} stores, {len(bad)} problems, "
          f"slowest run {slowest['seconds']:.1f} s, wall time {time.monotonic() - began:.0f} s")
    if options.json:
        ground.write_json(options.json, records)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
