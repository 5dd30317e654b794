"""The pairs of models that come without a store: can a mapping be inferred from the models alone?"""
import collections
import json
import os

from . import ground, tool

WORDS = {"lightweight", "needs-mapping", "same-model"}


def verdict_of(run):
    """What `godwit model diff --json` says, in the words of the cases."""
    found = [line for line in run.lines if isinstance(line, dict) and "isLightweight" in line]
    if not found:
        return None
    return "same-model" if found[-1]["isCompatible"] else "lightweight" if found[-1]["isLightweight"] else "needs-mapping"


def main():
    ground.skip_unless_shared("model pairs")
    with open(os.path.join(ground.CORPUS, "cases.json")) as file:
        pairs = json.load(file)["model_pairs"]
    counts, failed = collections.Counter(), 0
    for pair in pairs:
        a, b = (os.path.normpath(os.path.join(ground.CORPUS, pair[k])) for k in ("source_model", "destination_model"))
        run = tool.run([ground.godwit(), "model", "diff", a, b, "--json"], timeout=60)
        said, wanted = verdict_of(run), pair["expected"]
        either = pair.get("certainty") == "unspecified"
        good = said == wanted or either and said in WORDS
        counts[wanted, "as expected" if said == wanted else "other verdict" if good else "FAILED"] += 1
        if not good:
            failed += 1
            name = os.path.basename(os.path.dirname(a))
            print(f"{name}: {said or f'no verdict (exit {run.exit}): {run.stderr.strip()[-200:]}'}, expected {wanted}")
    columns = ("as expected", "other verdict", "FAILED")
    print(ground.table([(e, *(counts[e, c] for c in columns)) for e in sorted({e for e, _ in counts})],
                       ("expected", *columns)))
    print(f"{len(pairs)} pairs of models, {failed} failed")
    return 1 if failed else 0
