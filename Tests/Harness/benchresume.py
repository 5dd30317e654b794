"""A run that is killed at half of its rows, and the same command again: what is done twice."""
import os
import sys
import time

from . import benchrivals, crashes, ground, processes, tool

POLL = 0.01


def finished(directory):
    """{stage: [units, rows, bytes]} that the run directory reports finished; repeated ones count again."""
    found = {}
    for event in crashes.finish_events(directory):
        own = found.setdefault(event["stage"], [0, 0, 0])
        for place, more in enumerate((1, event["rows"], event["bytes"])):
            own[place] += more
    return found


def rows(found):
    return sum(own[1] for own in found.values())


def killed_at_half(command, directory, half):
    """Ends the run once it has finished so many rows; gives the seconds and what was finished."""
    began = time.monotonic()
    process = tool.start(command)
    while process.poll() is None and rows(finished(directory)) < half:
        time.sleep(POLL)
    held = processes.handles(processes.descendants(process.pid))
    tool.end_group(process)
    process.communicate()
    seconds = time.monotonic() - began
    for one in held:
        one.send(9)
    left = processes.wait_gone(held, 10)
    for one in held:
        one.close()
    if left:
        sys.exit(f"processes {[one.pid for one in left]} outlive the run")
    if process.returncode == 0:
        sys.exit("the run ended before half of its rows were reported; use a larger store")
    return seconds, finished(directory)


def run(given, folder):
    words = ["--megabytes", str(given.megabytes), "--seed", str(given.seed)]
    migration = benchrivals.migrations(folder, given.only[:1], words)[0]
    out = {name: benchrivals.out_path(folder, migration, name) for name in ("whole", "resumed")}

    def command(path):
        return migration.command(path, given.workers, migration.mapping, ["--keep-state"])
    began = time.monotonic()
    whole = tool.run(command(out["whole"]), timeout=7200)
    whole_seconds = time.monotonic() - began
    if whole.exit:
        sys.exit(f"godwit failed: {whole.why()}")
    all_units = finished(out["whole"] + ".godwit")
    directory = out["resumed"] + ".godwit"
    killed_seconds, before = killed_at_half(command(out["resumed"]), directory, rows(all_units) / 2)
    began = time.monotonic()
    again = tool.run(command(out["resumed"]), timeout=7200)
    seconds = time.monotonic() - began
    if again.exit:
        sys.exit(f"godwit failed at the second run: {again.why()}")
    benchrivals.compare(migration, "the resumed run", out["whole"], out["resumed"])
    after = finished(directory)
    table, redone = [], {}
    for stage, (units, count, size) in all_units.items():
        first, both = before.get(stage, [0, 0, 0]), after.get(stage, [0, 0, 0])
        twice = [b - w for b, w in zip(both, (units, count, size))]
        redone[stage] = {"units": twice[0], "rows": twice[1], "bytes": twice[2]}
        table.append((stage, units, count, first[0], first[1], *twice))
    print(f"{os.path.getsize(migration.store) / 1e6:.1f} MB, killed after {killed_seconds:.2f} s with "
          f"{rows(before)} of {rows(all_units)} rows finished, all stages together")
    print(ground.table(table, ("stage", "units", "rows", "units at the kill", "rows at the kill", "units again", "rows again",
                               "bytes again")))
    share = seconds / whole_seconds
    print(f"The second run took {seconds:.2f} s, {share:.2f} of a whole one ({whole_seconds:.2f} s); with the first one "
          f"{killed_seconds + seconds:.2f} s.\n"
          "Units that were under way at the kill are begun again, and are not counted as done twice.")
    return {"megabytes": given.megabytes, "killedSeconds": killed_seconds, "secondRunSeconds": seconds,
            "wholeRunSeconds": whole_seconds, "rowsAtKill": rows(before), "rows": rows(all_units), "again": redone}, {}
