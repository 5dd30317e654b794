"""What the oracle says, asked in this process: a Python start for each question would cost more
than most answers."""
import functools
import os
import sqlite3
import time

from . import ground

HAS_ORACLE = ground.load_oracle()
if HAS_ORACLE:
    from oraclelib import check, ddl, lightweight, logical, model as m, mutate, untouched
    from oraclelib.archive import ArchiveError
    from oraclelib.binding import Binding
    from oraclelib.command_line import verdict
    from oraclelib.inference import infer as inferred, judge_data
    from oraclelib.store import Store, StoreError
    UNREADABLE = (StoreError, m.ModelError, ArchiveError, OSError, sqlite3.Error, MemoryError,
                  OverflowError)

    class Unjudged(Exception):
        """The oracle judges everything."""
else:       # the repository's own judge, which knows less: ownjudge says what it cannot say
    from Judge import mutate
    from Judge.model import Unjudged
    from Judge.store import Store, StoreError
    UNREADABLE = (StoreError, Unjudged, OSError, sqlite3.Error, MemoryError, OverflowError)

# A store may hold these and still be migrated: damage that Core Data itself tolerates.
TOLERATED = {"dangling", "inverse", "note"}
# Rules of the model that rows break; they forbid nothing to a lightweight migration, which
# fails only on what it introduces itself. Counted apart.
VALIDATION = "validation"

spent = 0.0     # seconds of the oracle in this process


def timed(function):
    @functools.wraps(function)
    def wrapper(*arguments, **named):
        global spent
        began = time.monotonic()
        try:
            return function(*arguments, **named)
        finally:
            spent += time.monotonic() - began
    return wrapper


@functools.lru_cache(maxsize=512)
def model(spec):
    return m.load(spec)


def has_own_inverse(spec):
    """Whether a to-many relationship is its own inverse."""
    found = model(spec)
    return any(p.kind == "relationship" and p.many and (found.inverse(p) or (None, None))[1] is p
               for entity in found.entities.values() for p in entity.own.values())


def ordered(spec):
    """The names of ordered to-many relationships."""
    return {p.name for entity in model(spec).entities.values() for p in entity.own.values()
            if p.kind == "relationship" and p.many and p.ordered}


@timed
def findings(store, spec):
    """{class: count} of `oracle check`; {'unreadable': 1} when it cannot be judged."""
    try:
        with Store(store) as opened:
            report = check.Checker(opened, model(spec)).run()
    except UNREADABLE:
        return {"unreadable": 1}
    except Exception:       # the oracle is not made for every damage either
        return {"unreadable": 1}
    found = {}
    for finding in report.findings:
        found[finding["class"]] = found.get(finding["class"], 0) + finding["count"]
    return found


def unsound(found):
    """Classes that forbid a success."""
    return sorted(set(found) - TOLERATED - {VALIDATION})


@timed
def schema(store, spec):
    """`oracle ddl`: (class, whether the order of creation is the same, [what differs])."""
    with Store(store) as opened:
        result = ddl.run(opened, check.fit(model(spec), opened))
    differs = [f"{i['name']}: expected {i['expected']}, actual {i['actual']}"
               for part in ("tables", "indexes") for i in result[part]]
    return result["class"], result["order same"], differs


@timed
def compare(source, destination, source_spec, destination_spec, anyway=False):
    """`oracle lightweight`: {'refusals', 'total', 'kinds', 'first', 'notes'}."""
    with Store(source) as a, Store(destination) as b:
        found = lightweight.run(a, b, model(source_spec), model(destination_spec))
        refusals = [f"{r.reason}: {r.where}: {r.message}" for r in found.inference.refusals]
        if refusals and not anyway:
            return {"refusals": refusals, "total": None, "kinds": {}, "first": [], "notes": []}
        found.run()
    return {"refusals": refusals, "total": found.differences.total,
            "kinds": found.differences.kinds, "first": found.differences.first,
            "notes": sorted(set(found.notes + found.inference.notes))}


@timed
def infer(source, source_spec, destination_spec):
    """`oracle infer`: the verdict, the refusals, and the places of which Apple's text says nothing."""
    with Store(source) as store:
        a, b = check.fit(model(source_spec), store), model(destination_spec)
        found = judge_data(inferred(a, b), Binding(store, a))
        word = verdict(found, a.version_hashes() == b.version_hashes())
    places = {r.where for r in found.refusals if r.certainty == "unspecified"}
    places |= {n.split(":")[0] for n in found.notes if "unspecified" in n}
    inherited = any(b.properties(name)[p][0] != name for name, e in b.entities.items() for c in e.unique for p in c)
    return {"verdict": word, "refusals": found.refusals, "shares an entity": bool(found.entity),
            "inherited constraint": inherited,
            "reasons": [f"{r.reason} {r.where}: {r.message} ({r.by}, {r.certainty})" for r in found.refusals],
            "unspecified": sorted(places)}


@timed
def digest(store, spec=None):
    """`oracle logical` of a store under its own cached model, or under `spec`."""
    with Store(store) as opened:
        own = model(spec) if spec else opened.cached_model()
        return logical.run(opened, own)["digest"]


@timed
def graph(store, spec):
    """`oracle logical --no-pk`: equal for the same objects under other keys."""
    with Store(store) as opened:
        return logical.run(opened, model(spec), no_pk=True)["digest"]


def version_hashes(store):
    """What the store's metadata says about its version."""
    with Store(store) as opened:
        return dict(opened.hashes)


@timed
def state(store):
    """Everything `oracle untouched` records, and the names that lie beside the store."""
    folder = os.path.dirname(os.path.abspath(store))
    return {"files": untouched.state(store), "beside": sorted(os.listdir(folder))}


def changes(before, after, ignoring_beside=()):
    """What differs between two states: [text]."""
    found = []
    a, b = before["files"], after["files"]
    for name in sorted(set(a) | set(b)):
        x, y = a.get(name), b.get(name)
        if x == y:
            continue
        if not isinstance(x, dict) or not isinstance(y, dict):
            found.append(f"{name}: {'appeared' if not x else 'is gone'}")
        else:
            found += [f"{name}: {k} changed" for k in sorted(set(x) | set(y)) if x.get(k) != y.get(k)]
    fresh = set(after["beside"]) - set(before["beside"]) - set(ignoring_beside)
    return found + [f"{name}: left beside the store" for name in sorted(fresh)]


if not HAS_ORACLE:
    from .ownjudge import compare, digest, findings, infer, model, schema, state  # noqa: F811
