"""The crash sweep: random kills and kills after each durable step, in both ways of committing."""
import argparse
import collections
import concurrent.futures
import os
import shutil
import sys
import time

from . import crashes, ground, ledger


def steps_of(subject, facts, replace, folder, stride, limit):
    """A kill after durable step 1, 2, 3 … until a run gets through without one."""
    records, step = [], 1
    while step <= limit:
        where = os.path.join(folder, f"step-{'replace' if replace else 'output'}-{step}")
        os.makedirs(where)
        record = crashes.trial(subject, facts, replace, "step", step, where, step=step)
        shutil.rmtree(where, ignore_errors=True)
        records.append(record)
        if record["finished undisturbed"]:
            break
        step += stride
    else:
        records[-1]["problems"].append(f"no run got through {limit} durable steps")
    return records


def random_trial(subject, facts, replace, target, seed, kills, folder):
    where = os.path.join(folder, f"random-{seed}")
    os.makedirs(where)
    record = crashes.trial(subject, facts, replace, target, seed, where, kills=kills)
    shutil.rmtree(where, ignore_errors=True)
    return record


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/crash-sweep", description=__doc__)
    parser.add_argument("--kills", type=int, default=300, help="random kills, those after steps apart")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--short", action="store_true", help="8 kills of a small store, and every twelfth step")
    ledger.add_options(parser)
    parser.add_argument("--no-steps", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(arguments)
    if options.mapped:
        ground.skip_unless_shared("crash sweep, mapped")
    kills, rows, stride = (8, 3_000, 12) if options.short else (options.kills, options.rows, 1)
    ledger.prepare(options.mapped)
    os.environ["GODWIT"], os.environ["GODWIT_FIXTURES"] = ground.godwit(), ground.fixtures()
    began, records = time.monotonic(), []
    with ground.workspace("crash") as folder:
        pairs = []
        for wal in (False, True):
            # About forty shards, so that a kill finds some done, some at work and some waiting.
            subject = crashes.Subject.generated(folder, rows, options.seed, wal, shard_bytes=16 << 10,
                                                mapped=options.mapped)
            pairs.append((subject, crashes.facts_of(subject, os.path.join(folder, f"reference-{wal}"))))
        ground.say(f"undisturbed: {', '.join(f'{f.seconds:.2f} s' for _, f in pairs)}")
        with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
            waiting = set()
            if not options.no_steps:
                for replace, pair in ((True, pairs[1]), (False, pairs[0])):
                    waiting.add(pool.submit(steps_of, *pair, replace, folder, stride, 1_000))
            number = struck = 0
            # Some kills find nobody: the run was over, or no worker was alive. Those do not count.
            while (struck < kills and number < kills * 4) or waiting:
                while struck < kills and number < kills * 4 and len(waiting) < options.jobs + 2:
                    target = "term" if number % 10 == 9 else crashes.TARGETS[number % len(crashes.TARGETS)]
                    waiting.add(pool.submit(random_trial, *pairs[number // 4 % 2], number % 3 != 0, target,
                                            options.seed * 1_000_000 + number, 1 + number % 3, folder))
                    number += 1
                done, waiting = concurrent.futures.wait(waiting, return_when="FIRST_COMPLETED")
                for future in done:
                    found = future.result()
                    for record in found if isinstance(found, list) else [found]:
                        records.append(record)
                        if not record["target"].startswith("step"):
                            struck += record["kills"]
    return report(records, time.monotonic() - began, kills, options)


def report(records, elapsed, wanted, options):
    bad = [r for r in records if r["problems"]]
    for record in bad:
        for text in record["problems"]:
            print(f"{record['mode']}, {record['target']}, seed {record['seed']}, killed {record['moments']}: {text}")
    stepped = [r for r in records if r["target"].startswith("step")]
    randomly = [r for r in records if r not in stepped]
    moments = collections.Counter((m, r["mode"]) for r in records for m in r["moments"])
    rows = [(m, moments[(m, "output")], moments[(m, "replace")]) for m in sorted({m for m, _ in moments})]
    print(ground.table(rows, ("the kill struck", "output", "replace")))
    targets = collections.Counter()
    for record in randomly:
        targets[record["target"]] += record["kills"]
    struck = sum(r["kills"] for r in randomly)
    print(f"{struck} kills at random moments ({', '.join(f'{t} {n}' for t, n in sorted(targets.items()) if n)}), "
          f"{sum(r['kills'] for r in stepped)} runs killed after a durable step, "
          f"{sum(r['redone'] for r in records)} finished shards done again, {len(records)} trials, "
          f"{len(bad)} with problems, {elapsed:.0f} s")
    if options.json:
        ground.write_json(options.json, records)
    if struck < wanted and not bad:
        print(f"only {struck} of {wanted} kills found a process: use more --rows")
        return 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
