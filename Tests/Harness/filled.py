"""What a generated store holds, counted: a trial on empty rows would prove nothing."""
import collections

from . import judge

if judge.ground.load_oracle():
    from oraclelib import logical, model as m
    from oraclelib.binding import clause
    from oraclelib.store import Store, quote

KINDS = ("objects", "values", "NULLs", "texts not ASCII", "to-ones", "to-ones empty", "pairs",
         "to-manys empty")


def census(store, spec):
    """(counts by KINDS, [what the model allows and the store has none of])."""
    with Store(store) as opened:
        found = logical.Logical(opened, judge.model(spec))
        counts, lacks = collections.Counter(), []
        counts["objects"] = sum(1 for name in _concrete(found) for _ in found.rows(name, False))
        for name in _concrete(found):
            _values(found, name, counts, lacks)
        for relation in found.relations():
            _pairs(found, relation, counts, lacks)
        return counts, lacks


def _concrete(found):
    return [n for n in found.model.order
            if not found.model.entities[n].abstract and found.binding.table(n)]


def _values(found, name, counts, lacks):
    binding, properties = found.binding, found.model.properties(name)
    where = f"FROM {quote(binding.table(name))} WHERE {clause(binding, [name])}"
    one = lambda what: found.store.db.execute(f"SELECT {what} {where}").fetchone()[0]
    rows = one("count(*)")
    for label, column, _ in found.columns(name, True):
        prop = properties.get(label, (None, None))[1]
        if prop is None:            # a part of a composite
            continue
        filled = one(f"count({quote(column)})")
        if prop.kind == "relationship":
            counts["to-ones"] += filled
            counts["to-ones empty"] += rows - filled
            if rows and not filled and _has_objects(found, prop.destination):
                lacks.append(f"{name}.{label} leads nowhere")
            continue
        counts["values"] += filled
        counts["NULLs"] += rows - filled
        if prop.type == m.STRING:
            counts["texts not ASCII"] += one(
                f"coalesce(sum(length({quote(column)}) <> length(CAST({quote(column)} AS BLOB))), 0)")


def _has_objects(found, entity):
    return any(next(iter(found.rows(n, False)), None)
               for n in found.model.concrete(entity) if found.binding.table(n))


def _pairs(found, relation, counts, lacks):
    owner, prop, (column, members), _, _ = relation
    table = found.binding.table(owner)
    if table is None:
        return
    db = found.store.db
    pairs, owners = db.execute(
        f"SELECT count({column}), count(DISTINCT {column}) FROM {members}").fetchone()
    everyone = db.execute(
        f"SELECT count(*) FROM {quote(table)} "
        f"WHERE {clause(found.binding, found.model.concrete(owner))}").fetchone()[0]
    counts["pairs"] += pairs
    counts["to-manys empty"] += max(0, everyone - owners)
    if everyone and not pairs and _has_objects(found, prop.destination):
        lacks.append(f"{owner}.{prop.name} has no members")
