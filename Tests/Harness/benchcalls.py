"""What a small store costs the kernel: system calls of `godwit run`, counted by strace."""
import collections
import os
import re
import shutil
import sys

from . import benchfleet, ground, tool

# What waits for the disk, and what starts a process.
FLUSHES, STARTS = ("fsync", "fdatasync", "sync_file_range", "syncfs"), ("execve", "vfork", "fork")
OTHERS = ("openat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir", "mkdirat")
LINE = re.compile(rb"^\d+\s+(\w+)\(")
KILOBYTES = 100
GOALS = {"flushes": 8, "process starts": 0.1}


def counted(path):
    """{call: how often}; a call that another thread interrupts has two lines, and one of them counts."""
    found = collections.Counter()
    with open(path, "rb") as file:
        for line in file:
            call = LINE.match(line)
            if call:
                found[call[1].decode()] += 1
    return found


def run(given, folder):
    if not shutil.which("strace"):
        sys.exit("--calls needs strace")
    migration = benchfleet.template(os.path.join(folder, "template"), KILOBYTES, given.seed)
    stores, trace = os.path.join(folder, "stores"), os.path.join(folder, "trace")
    benchfleet.copies(migration.store, stores, given.stores)
    path = benchfleet.pipeline(os.path.join(folder, "pipeline"), migration, stores, True)
    done = tool.run(["strace", "-f", "-qq", "-e", "trace=" + ",".join((*FLUSHES, *STARTS, *OTHERS)), "-o", trace,
                     ground.godwit(), "run", path, "--workers", str(given.workers), "--json"], timeout=7200)
    if done.exit:
        sys.exit(f"godwit run failed under strace: {done.stderr[-1000:]}")
    found = counted(trace)
    each = {name: count / given.stores for name, count in sorted(found.items())}
    print(f"{given.stores} stores of {KILOBYTES} KB in place, system calls a store")
    print(ground.table([(name, f"{count:.2f}") for name, count in each.items()], ("call", "a store")))
    sums = {"flushes": sum(each.get(n, 0) for n in FLUSHES), "process starts": each.get("execve", 0)}
    goals = [{"goal": f"{name} a store", "found": round(value, 2), "limit": f"at most {GOALS[name]}", "met": value <= GOALS[name]}
             for name, value in sums.items()]
    return {"stores": given.stores, "kilobytes": KILOBYTES, "callsPerStore": each, "goals": goals}, {}
