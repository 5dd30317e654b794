"""`godwit fixture` for every model of the corpus that can be read: the oracle's `ddl` and `check` on the store.

Some models are kept in several forms; each is tried. Stores with a write-ahead log, external data and history
take turns with plain ones.
"""
import argparse
import os
import shutil
import sys
import time

from . import ground, judge, tool

MODELS = os.path.join(ground.SHARED, "corpus-models")
OPTIONS = [[], ["--wal"], ["--external", "0.3"], ["--history", "--ascii"], ["--nulls", "0"], ["--nulls", "1"]]


def models():
    """Every file that may be a model."""
    found = []
    for base, folders, names in sorted(os.walk(MODELS)):
        folders.sort()
        found += [os.path.join(base, n) for n in sorted(names) if n.endswith((".mom", "contents.xml"))]
    return found


def trial(path, number, rows, folder):
    """(outcome, [problem]) of one model."""
    store = os.path.join(folder, f"{number}.sqlite")
    model = path
    if path.endswith(".xml"):
        # A `contents` file goes by its name.
        model = os.path.join(folder, f"{number}.xcdatamodel")
        os.makedirs(model)
        shutil.copyfile(path, os.path.join(model, "contents"))
    options = OPTIONS[number % len(OPTIONS)]
    run = tool.run([ground.godwit(), "fixture", model, "-o", store, "--rows", str(rows), "--seed", str(number + 1),
                    "--json", *options], 120)
    if run.exit == 65:
        return "refused", []
    problems = [] if run.exit == 0 else [f"exit {run.exit}: {run.stderr.strip()[-300:]}"]
    if run.exit == 0:
        found = judge.findings(store, model)
        bad = {k: v for k, v in found.items() if k != "note"}
        if bad:
            problems.append(f"check, with {options}: {bad}")
        shape, in_order, differs = judge.schema(store, model)
        # The order of creation is no failure for the oracle either; it says where it is another.
        if shape != "exact":
            problems.append(f"ddl: {shape}: {differs[:2]}")
        elif not in_order:
            print(f"{os.path.relpath(path, MODELS)}: indexes are created in another order than the oracle's")
        verified = tool.run([ground.godwit(), "verify", store, "--json"], 120)
        if verified.exit:
            problems.append(f"verify: exit {verified.exit}: {verified.stderr.strip()[-300:]}")
    return "made", problems


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python3 -m Harness.fixtures", description=__doc__)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--every", type=int, default=1, help="every n-th model only")
    options = parser.parse_args(arguments)
    ground.skip_unless_shared("fixtures")
    if not os.path.isdir(MODELS):
        print(f"fixtures: skipped, since {MODELS} is not there")
        return 0
    began, made, refused, bad = time.monotonic(), 0, [], 0
    with ground.fast_workspace("fixtures") as folder:
        chosen = models()[::options.every]
        for number, path in enumerate(chosen):
            outcome, problems = trial(path, number, options.rows, folder)
            name = os.path.relpath(path, MODELS)
            made += outcome == "made"
            if outcome == "refused":
                refused.append(name)
            for text in problems:
                print(f"{name} seed {number + 1}: {text}")
            bad += bool(problems)
    for name in refused:
        print(f"{name}: not read as a model")
    print(f"{len(chosen)} models, {made} stores, {bad} with problems, {len(refused)} refused, "
          f"{time.monotonic() - began:.0f} s")
    return 1 if bad or not made else 0


if __name__ == "__main__":
    sys.exit(main())
