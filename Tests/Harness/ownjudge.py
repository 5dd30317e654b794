"""The questions of `judge`, answered by the judge that comes with the repository.

Models are given by path, as Xcode writes them. What it cannot judge it counts in `unjudged`, so that a trial
can say so.
"""
import collections
import functools
import os

from Judge import lightweight, soundness
from Judge.model import Model, Unjudged
from Judge.store import Layout, Store, StoreError, digest as digest_of, state as state_of

unjudged = collections.Counter()    # why: how often


@functools.lru_cache(maxsize=512)
def model(spec):
    if spec.startswith("cache:"):
        raise Unjudged("a model is given as the cache of a store")
    return Model(spec)


def findings(store, spec):
    """{kind: count}; {'unreadable': 1} when it cannot be judged."""
    try:
        with Store(store) as opened:
            return dict(soundness.findings(opened, model(spec)))
    except Unjudged as reason:
        unjudged[str(reason)] += 1
        return {}
    except Exception as error:       # damage may be anything
        if os.environ.get("JUDGE_DEBUG"):
            raise error
        return {"unreadable": 1}


def schema(store, spec):
    """(class, whether the order of creation is the same, [what differs]): tables and columns alone."""
    with Store(store) as opened:
        try:
            differs = Layout(model(spec), opened.numbers).check(opened)
        except Unjudged as reason:
            unjudged[str(reason)] += 1
            differs = []
    return ("differs" if differs else "exact"), True, differs


def compare(source, destination, source_spec, destination_spec, anyway=False):
    """{'refusals', 'total', 'kinds', 'first', 'notes'}"""
    del anyway
    a, b = model(source_spec), model(destination_spec)
    refusals = lightweight.refusals(a, b)
    if refusals:
        return {"refusals": refusals, "total": None, "kinds": {}, "first": [], "notes": []}
    found = lightweight.compare(source, destination, a, b)
    return {"refusals": [], "total": found.total, "kinds": dict(found.kinds), "first": found.first, "notes": [],
            "compared": found.compared}


def infer(source, source_spec, destination_spec):
    """What the models say: `lightweight` or `needs-mapping`."""
    del source
    found = lightweight.refusals(model(source_spec), model(destination_spec))
    return {"verdict": "needs-mapping" if found else "lightweight", "refusals": found}


def digest(store, spec=None):
    """One text for what a store holds."""
    del spec
    return digest_of(store)


def state(store):
    """Everything about a store's files, and the names that lie beside it."""
    return {"files": state_of(store), "beside": sorted(os.listdir(os.path.dirname(os.path.abspath(store))))}


__all__ = ["StoreError", "compare", "digest", "findings", "infer", "model", "schema", "state", "unjudged"]
