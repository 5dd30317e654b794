"""Determinism over workers and shard sizes, and the memory of each process."""
import argparse
import os
import sys
import time

from . import crashes, ground, judge, ledger, processes, tool

MEBIBYTE = 1 << 20
WORKER_LIMIT, COORDINATOR_LIMIT = 128 * MEBIBYTE, 256 * MEBIBYTE


def determinism(arguments=None):
    """Workers 1, 2, 4 × three shard sizes: one logical digest."""
    parser = argparse.ArgumentParser(prog="scripts/determinism", description=determinism.__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--shard-bytes", nargs="+", type=int, default=[16 << 10, 256 << 10, 16 << 20])
    ledger.add_options(parser)
    options = parser.parse_args(arguments)
    if options.mapped:
        ground.skip_unless_shared("determinism, mapped")
    ledger.prepare(options.mapped)
    rows, digests, problems = [], set(), []
    with ground.workspace("matrix") as folder:
        subject = crashes.Subject.generated(folder, options.rows, options.seed, mapped=options.mapped)
        for workers in options.workers:
            for size in options.shard_bytes:
                out = os.path.join(folder, f"{workers}-{size}", "out.sqlite")
                os.makedirs(os.path.dirname(out))
                # The largest shards go through the other assembly.
                env = {"GODWIT_ASSEMBLY": "sqlite"} if size == max(options.shard_bytes) else {}
                run = tool.run(subject.command(subject.store, out, workers, size), env=tool.environment(**env))
                problems += [f"{workers} workers, {size} bytes: {p}" for p in tool.contract_problems(run)]
                digest = judge.digest(out) if run.exit == 0 and os.path.exists(out) else run.why()
                units = sum(stage["units"] for stage in (run.result or {}).get("stages", []))
                rows.append((workers, size, env.get("GODWIT_ASSEMBLY", "pages"), units, f"{run.seconds:.2f}",
                             digest[:64]))
                digests.add(digest)
                if run.exit:
                    problems.append(f"{workers} workers, {size} bytes: {run.why()}")
        if options.mapped and not problems:
            problems += ledger.problems(subject.store, out, options.mapped)
        # The same cuts everywhere would prove nothing.
        if len({r[3] for r in rows}) < 2:
            problems.append("every run had the same number of units: use more --rows")
    print(ground.table(rows, ("workers", "shard bytes", "assembly", "units", "seconds", "logical digest")))
    for text in problems:
        print(text)
    if len(digests) != 1:
        print(f"FAILED: {len(digests)} different results")
    return 1 if problems or len(digests) != 1 else 0


def watched(command):
    """(run, peak of the coordinator, {worker: peak}) with the peaks the kernel kept (VmHWM)."""
    coordinator, workers = 0, {}
    began = time.monotonic()
    process = tool.start(command)
    while process.poll() is None:
        coordinator = max(coordinator, processes.peak_bytes(process.pid) or 0)
        for pid in processes.descendants(process.pid):
            workers[pid] = max(workers.get(pid, 0), processes.peak_bytes(pid) or 0)
        time.sleep(0.01)
    return tool.finish(process, began, 60), coordinator, workers


def memory(arguments=None):
    """Peak resident memory at a small and a large store: flat, and under the limits."""
    parser = argparse.ArgumentParser(prog="scripts/memory", description=memory.__doc__)
    parser.add_argument("--rows", nargs="+", type=int, default=[50_000, 2_000_000])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    ledger.add_options(parser)
    options = parser.parse_args(arguments)
    ledger.prepare(options.mapped)
    rows, problems = [], []
    for number in options.rows:
        with ground.workspace("memory") as folder:
            where, out = os.path.join(folder, "fleet"), os.path.join(folder, "out.sqlite")
            if options.mapped:
                store, what = ledger.make_store(where, number, options.seed), (ledger.MODELS, ledger.NAME)
            else:
                store = ground.make_fleet(where, 1, number, options.seed)[0]
                what = (ground.MODELS, ground.DESTINATION)
            command = tool.migrate_command(store, [what[0]], what[1], out, options.workers,
                                           extra=["--mapping", options.mapped] if options.mapped else [])
            run, coordinator, workers = watched(command)
            size = os.path.getsize(store)
            if options.mapped and not run.exit and os.path.isdir(ground.SHARED):
                problems += [f"{number} rows: {p}" for p in ledger.problems(store, out, options.mapped)]
        highest = max(workers.values(), default=0)
        if run.exit:
            problems.append(f"{number} rows: {run.why()}")
        for word, peak, limit in (("worker", highest, WORKER_LIMIT), ("coordinator", coordinator, COORDINATOR_LIMIT)):
            if peak > limit:
                problems.append(f"{number} rows: a {word} took {peak // MEBIBYTE} MiB, "
                                f"at most {limit // MEBIBYTE} are allowed")
        if not workers:
            problems.append(f"{number} rows: no worker process was seen")
        rows.append((number, f"{size / MEBIBYTE:.1f}", len(workers), f"{highest / MEBIBYTE:.1f}",
                     f"{coordinator / MEBIBYTE:.1f}", f"{run.seconds:.1f}"))
    print(ground.table(rows, ("rows", "store MiB", "workers", "peak worker MiB", "peak coordinator MiB", "seconds")))
    for text in problems:
        print(text)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit({"determinism": determinism, "memory": memory}[sys.argv[1]](sys.argv[2:]))
