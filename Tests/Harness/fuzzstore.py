"""Source stores for random models: made by the fixtures tool, then disturbed as real stores are."""
import os
import re
import shlex
import sqlite3
import subprocess

from . import ground, judge, modelxml

if ground.load_oracle():
    from oraclelib import model as m
    from oraclelib.layout import Layout
    from oraclelib.store import quote


def shell(word):
    return shlex.quote(str(word))


def make(rng, folder, model):
    """(path, the command), or (None, why no store could be made)."""
    store = os.path.join(folder, "source", "store.sqlite")
    os.makedirs(os.path.dirname(store))
    words = ["make-store", "--model", model, "--output", store, "--rows", rng.choice([0, 1, 2, 5, 5, 12, 12, 40]),
             "--seed", rng.randrange(1 << 30), "--nulls", rng.choice([0, .15, .15, .5, 1])]
    for entity in judge.model(model).order:
        if rng.random() < .2 and "=" not in entity:
            words += ["--entity-rows", f"{entity}={rng.choice([0, 0, 1, 3, 20])}"]
    if rng.random() < .3:
        words += ["--external", rng.choice([.2, 1])]
    words += [flag for flag, odds in (("--wal", .25), ("--history", .15), ("--ascii", .1)) if rng.random() < odds]
    if rng.random() < .3:
        words += ["--largest", rng.choice([1, 100, 40000])]
    command = [ground.fixtures(), *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        return None, f"{' '.join(map(shell, command))}\n{done.stderr.decode(errors='replace').strip()}"
    return store, " ".join(map(shell, command))


def unsound(store, spec):
    """What the oracle has against a fresh store: '' for nothing."""
    text, _, differs = judge.schema(store, spec)
    if text != "exact":
        return f"ddl: {text}: {differs[0]}"
    found = judge.findings(store, spec)
    broken = sorted(set(found) - {"note", judge.VALIDATION})
    return f"check: {', '.join(f'{k} ({found[k]})' for k in broken)}" if broken else ""


def tell_apart(models):
    """Gives every version of a chain hashes of its own, as versions that Core Data tells apart have."""
    seen = set()
    for number, model in enumerate(models):
        while (found := hashes(model)) in seen:
            entity = next(iter(model.entities.values()))
            entity.modifier = f"{entity.modifier or ''}v{number}"
        seen.add(found)


def hashes(model):
    return tuple(sorted(m.from_xml(modelxml.contents(model).encode()).version_hashes().items()))


def disturb(rng, store, spec):
    """Changes rows of a store without a WAL to what Core Data tolerates: [what was done]."""
    if os.path.exists(store + "-wal") or rng.random() < .6:
        return []
    model = judge.model(spec)
    layout, said = Layout(model), []
    connection = sqlite3.connect(store, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("BEGIN")
    for name in model.order:
        for prop in model.entities[name].own.values():
            if prop.kind != "relationship" or prop.many or prop.transient or prop.destination not in model.entities:
                continue
            inverse = model.inverse(prop)
            if inverse and (not inverse[1].many or counted(model, inverse[1].name)) or (name, prop.name) not in layout.columns or constrained(model, name, prop.name):
                continue
            said += share(rng, connection, layout, name, prop, inverse)
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    return said


def share(rng, connection, layout, name, prop, inverse):
    """Makes many objects refer to one target, or a few to none that exists."""
    model = layout.model
    table, column = quote(layout.table_of[name].name), quote(layout.columns[name, prop.name])
    entity_column = layout.entity_columns.get((name, prop.name))
    numbers = ",".join(str(model.numbers[n]) for n in model.subtree(name))
    ordered = inverse is not None and inverse[1].ordered
    dice = rng.random()
    if dice < .2 and not ordered:
        filled = f"Z_ENT IN ({numbers}) AND {column} IS NOT NULL"
        target = connection.execute(f"SELECT {column}{', ' + quote(entity_column) if entity_column else ''} FROM {table} "
                                    f"WHERE {filled} ORDER BY Z_PK LIMIT 1").fetchone()
        if target is None:
            return []
        both = f"{column} = ?" + (f", {quote(entity_column)} = ?" if entity_column else "")
        connection.execute(f"UPDATE {table} SET {both} WHERE {filled} AND Z_PK % 3 > 0", target)
        return [f"rows: {name}.{prop.name} shares its targets"]
    if dice < .3:
        key = f"(SELECT max(Z_PK) FROM {table} WHERE Z_ENT IN ({numbers}) AND {column} IS NOT NULL)"
        connection.execute(f"UPDATE {table} SET {column} = 900001 WHERE Z_PK = {key}")
        return [f"rows: {name}.{prop.name} leads to no object"] if connection.execute("SELECT changes()").fetchone()[0] else []
    return []


def counted(model, relationship):
    """Does a derived attribute count the relationship? Its value would no longer be true."""
    return any(p.kind == "attribute" and p.derived == f"count:({relationship})" for e in model.entities.values()
               for p in e.own.values())


def constrained(model, entity, prop):
    return any(prop in names for n in model.order for names in model.entities[n].unique
               if model.is_a(n, entity) or model.is_a(entity, n))
