"""The repository's own corpus: seeded stores of its models, and of random ones, made when they are needed.

Cases have the form of the third-party corpus: a store, two models, what is expected, and how sure that is.
Of the models of `Fixtures` and `Pipelines` the expected verdicts are written here; of random models the
judge decides about what was migrated, and every verdict will do.
"""
import itertools
import os
import random
import subprocess

from . import ground, modelchanges, modelxml, randommodels

ROOT = ground.ROOT
# Bundle, older and newer version, what is expected.
PAIRS = [
    ("Fixtures/Recipes", "Recipes", "Recipes 2", "lightweight"),
    ("Fixtures/Recipes", "Recipes 1.1", "Recipes 2", "lightweight"),
    ("Fixtures/Recipes", "Recipes", "Recipes 1.1", "same-model"),
    ("Fixtures/Recipes", "Recipes", "Recipes 2 M", "refused"),       # an entity becomes abstract and has objects
    ("Fixtures/Ledger", "Ledger", "Ledger 2", "refused"),            # new required attributes without default
    ("Pipelines/celsius/Weather", "Weather", "Weather 2", "lightweight"),
    ("Pipelines/total-cost/Orders", "Orders", "Orders 2", "lightweight"),
    ("Pipelines/trades/Trades", "Trades", "Trades 2", "lightweight"),
    ("Pipelines/escaped-keys/Parcels", "Parcels", "Parcels 2", "lightweight"),
    ("Pipelines/notes-progressive/Notes", "Notes", "Notes 2", "lightweight"),
    ("Pipelines/notes-progressive/Notes", "Notes 2", "Notes 3", "lightweight"),
    ("Pipelines/notes-progressive/Notes", "Notes 3", "Notes 4", "lightweight"),
    ("Pipelines/notes-progressive/Notes", "Notes 4", "Notes 5", "lightweight"),
]
KINDS = [[], ["--wal"], ["--external", "0.3"], ["--history", "--nulls", "0.8"]]
RANDOM = 60     # pairs of random models
RANDOMLY = "random models"


def make_store(model, path, rows, seed, words=(), valid_for=None):
    """A seeded store; False where this model has none, and nothing is left."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    command = [ground.godwit(), "fixture", model, "--rows", str(rows), "--seed", str(seed), "-o", path, *words]
    if valid_for:
        command += ["--valid-for", valid_for]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return done.returncode == 0


def version(bundle, name):
    return os.path.join(ROOT, bundle + ".xcdatamodeld", name + ".xcdatamodel")


def varied(folder, number):
    """Some stores that differ in what they have: external data, a log, inheritance, history, many relationships."""
    found = []
    for place, (bundle, old, new, words) in enumerate((
            ("Fixtures/Recipes", "Recipes", "Recipes 2", ["--external", "0.3"]),
            ("Fixtures/Recipes", "Recipes", "Recipes 2", ["--wal"]),
            ("Pipelines/notes-progressive/Notes", "Notes 2", "Notes 3", ["--history"]),
            ("Pipelines/trades/Trades", "Trades", "Trades 2", []),
            ("Pipelines/total-cost/Orders", "Orders", "Orders 2", ["--wal"]))[:number]):
        a, b = version(bundle, old), version(bundle, new)
        path = os.path.join(folder, str(place), os.path.basename(bundle) + ".sqlite")
        if not make_store(a, path, 60, place + 1, words, b):
            raise RuntimeError(f"no store of {a}")
        found.append({"id": place + 1, "store": path, "source_model": a, "destination_model": b,
                      "expected": "lightweight", "certainty": "written down"})
    return found


def cases(folder, seed=1, extra=RANDOM):
    """Every case, its store made below a folder."""
    found = []

    def add(store, a, b, expected, certainty):
        found.append({"id": len(found) + 1, "store": store, "source_model": a, "destination_model": b,
                      "expected": expected, "certainty": certainty})
    for (number, (bundle, old, new, expected)), words in itertools.product(enumerate(PAIRS), KINDS):
        a, b = version(bundle, old), version(bundle, new)
        stem = os.path.basename(bundle)
        path = os.path.join(folder, f"{number}-{'-'.join(w.strip('-') for w in words) or 'plain'}", stem + ".sqlite")
        if make_store(a, path, 40, seed + number, words, b if expected == "lightweight" else None):
            add(path, a, b, expected, "written down")
    numbers = itertools.count()
    for _ in range(extra):
        models = None
        while models is None or any(m.composites for m in models):      # those the judge does not know
            number = next(numbers)
            models, _ = modelchanges.chain(random.Random(f"corpus {seed} {number}"), 2, 4)
        where = os.path.join(folder, f"random-{number}")
        a, b = modelxml.write_bundle(where, models)
        path = os.path.join(where, "Random.sqlite")
        if make_store(a, path, 12, seed + number, KINDS[number % len(KINDS)]):
            add(path, a, b, "lightweight", RANDOMLY)
    return found
