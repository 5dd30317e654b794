"""What sound stores keep, by Core Data's documented layout: {kind: count} of what a store breaks."""
import collections
import plistlib
import zlib

from .model import Relationship, Unjudged
from .store import Layout, external_files, external_name, quote

STORAGE = {"INTEGER": ("integer",), "VARCHAR": ("text",), "BLOB": ("blob",), "FLOAT": ("real", "integer"),
           "DECIMAL": ("real", "integer"), "TIMESTAMP": ("real", "integer")}


def findings(store, model):
    """Kinds are words of `godwit inspect` where both know a rule."""
    found = collections.Counter()
    for (text,) in store.db.execute("PRAGMA integrity_check(20)"):
        found["file"] += text != "ok"
    try:
        content = store.db.execute("SELECT Z_CONTENT FROM Z_MODELCACHE").fetchone()[0]
        plistlib.loads(zlib.decompressobj(-15).decompress(content, 64 << 20))
    except Exception:       # whatever is wrong with it
        found["modelcache"] += 1
    try:
        layout = Layout(model, store.numbers)
        found["schema"] += len(layout.check(store))
    except Unjudged:
        raise
    except Exception:
        found["control"] += 1
        return +found
    if found["schema"]:
        return +found
    control(store, layout, found)
    for name, entity in model.entities.items():
        values(store, layout, model, name, found)
        for prop in entity.properties.values():
            if isinstance(prop, Relationship):
                references(store, layout, model, name, prop, found)
        for constraint in entity.unique:
            unique(store, layout, model, name, constraint, found)
    return +found


def count(store, sql, *arguments):
    return store.db.execute(sql, arguments).fetchone()[0]


def control(store, layout, found):
    """Highest keys and entity numbers."""
    for table in layout.expected:
        roots = [n for n in layout.order if layout.table(n) == table]
        numbers = ", ".join(str(layout.numbers[n]) for n in roots if not layout.model.entities[n].abstract) or "NULL"
        found["rows"] += count(store, f"SELECT count(*) FROM {quote(table)} WHERE Z_ENT NOT IN ({numbers}) OR Z_ENT IS NULL")
        highest = count(store, f"SELECT ifnull(max(Z_PK), 0) FROM {quote(table)}")
        recorded = count(store, "SELECT ifnull(max(Z_MAX), 0) FROM Z_PRIMARYKEY WHERE Z_ENT = ?",
                         layout.numbers[layout.model.root(roots[0])])
        found["control"] += not isinstance(recorded, int) or recorded < highest


def values(store, layout, model, name, found):
    """Missing values, and storage classes."""
    number, table, files = layout.numbers[name], quote(layout.table(name)), None
    for owner, prop in model.properties(name).values():
        if isinstance(prop, Relationship) or prop.derived:
            continue
        column = quote(layout.column[owner, prop.name])
        if not prop.optional:
            found["required"] += count(store, f"SELECT count(*) FROM {table} WHERE Z_ENT = ? AND {column} IS NULL", number)
        kinds = ", ".join(f"'{k}'" for k in (*STORAGE[layout.expected[layout.table(name)][layout.column[owner, prop.name]]],
                                             "null"))
        found["type"] += count(store, f"SELECT count(*) FROM {table} WHERE Z_ENT = ? AND typeof({column}) NOT IN ({kinds})",
                               number)
        if prop.external:
            files = external_files(store.path) if files is None else files
            for (value,) in store.db.execute(f"SELECT {column} FROM {table} WHERE Z_ENT = ? AND {column} IS NOT NULL",
                                             (number,)):
                file = external_name(value)
                found["external"] += not (isinstance(value, bytes) and (value[:1] == b"\1" or file))
                # Core Data opens such a store; what is lost is reported and carried.
                found["note"] += file is not None and file not in files


def references(store, layout, model, name, prop, found):
    """References that lead nowhere, or to an object of a wrong entity."""
    if prop.many:
        if layout.pairs[name, prop.name][2] == "Z_PK":
            return      # a to-one's other side
        table, _, column, _ = layout.pairs[name, prop.name]
    else:
        table, column = layout.table(name), layout.column[name, prop.name]
    target = quote(layout.table(prop.destination))
    numbers = ", ".join(str(layout.numbers[n]) for n in model.below(prop.destination))
    sql = (f"SELECT count(*) FROM {quote(table)} x LEFT JOIN {target} t ON t.Z_PK = x.{quote(column)} "
           f"WHERE x.{quote(column)} IS NOT NULL AND ")
    found["dangling"] += count(store, sql + "t.Z_PK IS NULL")
    found["targetEntity"] += count(store, sql + f"t.Z_PK IS NOT NULL AND t.Z_ENT NOT IN ({numbers})")


def unique(store, layout, model, name, constraint, found):
    """Equal values that a uniqueness constraint forbids."""
    there = model.properties(name)
    columns = [quote(layout.column[there[part][0], part]) for part in constraint if part in there
               and (there[part][0], part) in layout.column]
    if not columns or len(columns) != len(constraint):
        return
    numbers = ", ".join(str(layout.numbers[n]) for n in model.below(name))
    filled = " AND ".join(f"{c} IS NOT NULL" for c in columns)
    found["unique"] += count(store, f"SELECT count(*) FROM (SELECT 1 FROM {quote(layout.table(name))} WHERE Z_ENT IN ({numbers})"
                                    f" AND {filled} GROUP BY {', '.join(columns)} HAVING count(*) > 1)")
