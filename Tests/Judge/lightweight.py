"""A lightweight migration judged row by row: what the destination must hold follows from the two models and
the source."""
import collections
import math
import struct

from .model import NUMBERS, Relationship, Unjudged, default_value
from .store import Layout, Store, quote

LIMIT = 20


def successions(source, destination):
    """({destination entity: source entity}, {(entity, property) of the destination: that of the source}).

    A renaming identifier names the old one; without it the name does.
    """
    entities, properties = {}, {}
    for name, entity in destination.entities.items():
        for wanted in (entity.identifier, name):
            if wanted in source.entities:
                entities[name] = wanted
                break
    for name in destination.entities:
        if name not in entities:
            continue
        there = source.properties(entities[name])
        for prop_name, (_, prop) in destination.properties(name).items():
            for wanted in (prop.identifier, prop_name):
                if wanted in there and isinstance(there[wanted][1], Relationship) == isinstance(prop, Relationship):
                    properties[name, prop_name] = wanted
                    break
    return entities, properties


def refusals(source, destination):
    """Why the models forbid an inferred mapping: [text]; the rules that Apple documents for every row."""
    entities, properties = successions(source, destination)
    found = []
    for name in destination.entities:
        if name not in entities:
            continue
        there = source.properties(entities[name])
        for prop_name, (_, prop) in destination.properties(name).items():
            if isinstance(prop, Relationship):
                continue
            old = there.get(properties.get((name, prop_name)))
            if old and old[1].type != prop.type and not (old[1].type in NUMBERS and prop.type in NUMBERS):
                found.append(f"{name}.{prop_name}: {old[1].type} becomes {prop.type}")
            if not prop.optional and prop.default is None and (old is None or old[1].optional):
                found.append(f"{name}.{prop_name} is required and has no default")
    several = [n for n, count in collections.Counter(entities.values()).items() if count > 1]
    found += [f"{n} becomes several entities" for n in several]
    for a in destination.entities:
        for b in destination.entities:
            if a < b and a in entities and b in entities and destination.root(a) == destination.root(b) \
                    and source.root(entities[a]) != source.root(entities[b]):
                found.append(f"{a} and {b} get a common parent")
    return found


class Comparison:
    """Differences between what a migration must give and what it gave."""

    def __init__(self, source_store, destination_store, source, destination):
        self.source, self.destination = source, destination
        self.a, self.b = source_store, destination_store
        self.before, self.after = Layout(source, self.a.numbers), Layout(destination, self.b.numbers)
        self.entities, self.properties = successions(source, destination)
        self.total, self.kinds, self.first, self.compared = 0, collections.Counter(), [], 0
        self.unjudged = []      # what was left out, and why

    def differs(self, kind, text):
        self.total += 1
        self.kinds[kind] += 1
        if len(self.first) < LIMIT:
            self.first.append(f"{kind}: {text}")

    def run(self):
        for text in self.after.check(self.b):
            self.differs("layout", text)
        self.before.check(self.a)
        if self.a.uuid != self.b.uuid:
            self.differs("metadata", "another store UUID")
        for name in self.destination.entities:
            if not self.destination.entities[name].abstract:
                self.objects(name)
        for name, entity in self.destination.entities.items():
            for prop in entity.properties.values():
                if isinstance(prop, Relationship):
                    self.references(name, prop)
        return self

    def rows(self, store, layout, entity, columns):
        sql = f"SELECT {', '.join(map(quote, ['Z_PK', *columns]))} FROM {quote(layout.table(entity))} WHERE Z_ENT = ?"
        return {row[0]: row[1:] for row in store.db.execute(sql, (layout.numbers[entity],))}

    def objects(self, name):
        """Every object of an entity is there, under its key, with its values."""
        there = self.destination.properties(name)
        attributes = [(owner, p) for owner, p in there.values() if not isinstance(p, Relationship)]
        new = self.rows(self.b, self.after, name, [self.after.column[o, p.name] for o, p in attributes])
        old_entity = self.entities.get(name)
        if old_entity is None or self.source.entities[old_entity].abstract:
            if new:
                self.differs("objects", f"{len(new)} of the new entity {name}")
            return
        old_properties = self.source.properties(old_entity)
        pairs = [(p, old_properties.get(self.properties.get((name, p.name)))) for _, p in attributes]
        columns = [self.before.column[old[0], old[1].name] for _, old in pairs if old]
        old_rows = self.rows(self.a, self.before, old_entity, columns)
        if set(old_rows) != set(new):
            self.differs("objects", f"{name}: {len(old_rows)} before, {len(new)} after")
        for key in set(old_rows) & set(new):
            values = iter(old_rows[key])
            for (prop, old), actual in zip(pairs, new[key]):
                value = next(values) if old else None
                if prop.derived or (old and old[1].derived):
                    continue
                self.compared += 1
                wanted = expected(prop, old[1] if old else None, value)
                if not same(wanted, actual):
                    self.differs("value", f"{name}.{prop.name} of Z_PK {key}")

    def references(self, name, prop):
        """Each reference of the source that has a place is there, and no other."""
        old_name = self.properties.get((name, prop.name))
        after = self.edges(self.b, self.after, self.destination, name, prop)
        if old_name is None:
            inverse = self.destination.inverse(prop)
            if after and not (inverse and (inverse[0], inverse[1].name) in self.properties):
                self.differs("references", f"{len(after)} of the new relationship {name}.{prop.name}")
            return
        owner, old = self.source.properties(self.entities[name])[old_name]
        if self.inverse_changes(prop, old):
            self.unjudged.append(f"{name}.{prop.name} gets another inverse")
            return
        kept = {n for entity in self.destination.below(name) if (n := self.entities.get(entity))}
        allowed = {n for entity in self.destination.below(prop.destination) if (n := self.entities.get(entity))}
        other = self.source.inverse(old)
        if prop.many and not old.many and other and not other[1].many:
            # A one-to-one has two columns, which may disagree in a damaged store: the one that stays decides.
            before = {(b, a) for a, b in self.edges(self.a, self.before, self.source, *other, allowed, kept)}
        else:
            before = self.edges(self.a, self.before, self.source, owner, old, kept, allowed)
        self.compared += len(before)
        if before != after:
            self.differs("references", f"{name}.{prop.name}: {len(before - after)} are missing, {len(after - before)} "
                                       "should not be there")

    def inverse_changes(self, prop, old):
        """Whether the inverse is not what the old inverse became: then Apple does not say whose references count."""
        new, before = self.destination.inverse(prop), self.source.inverse(old)
        if new is None or before is None:
            return new is not before
        return self.properties.get((new[0], new[1].name)) != before[1].name

    def edges(self, store, layout, model, owner, prop, owners=None, targets=None):
        """{(owner's key, target's key)}; of objects of some entities only, where they are given."""
        if prop.many:
            table, own, other, _ = layout.pairs[owner, prop.name]
        else:
            table, own, other = layout.table(owner), "Z_PK", layout.column[owner, prop.name]
        sql = (f"SELECT x.{quote(own)}, x.{quote(other)} FROM {quote(table)} x "
               f"WHERE x.{quote(own)} IS NOT NULL AND x.{quote(other)} IS NOT NULL")
        found = set(store.db.execute(sql))
        for place, entity, names in ((0, owner, owners), (1, prop.destination, targets)):
            numbers = {layout.numbers[n] for n in (names if names is not None else model.below(entity)) if n in layout.numbers}
            keys = {key for key, number in store.db.execute(
                f"SELECT Z_PK, Z_ENT FROM {quote(layout.table(entity))}") if number in numbers}
            found = {pair for pair in found if pair[place] in keys}
        return found


def expected(prop, old, value):
    """What an attribute of the destination must hold."""
    if value is None:
        return None if prop.optional and old is not None else default_value(prop)
    if prop.type == old.type:
        if prop.type == "Binary" and prop.external != old.external:
            return value[1:] if old.external and value[:1] == b"\1" else b"\1" + value if not old.external else Any
        return value
    return converted(value, prop.type)


class Any:
    """A value that this judge does not know."""


def converted(value, kind):
    """A number in another type: toward zero, then to the nearest value of the type."""
    if kind in ("Double", "Decimal"):
        return float(value)
    if kind == "Float":
        return struct.unpack("f", struct.pack("f", value))[0] if abs(value) < 3.4e38 else Any
    if isinstance(value, float) and not math.isfinite(value):
        return Any
    low, high = {"Integer 16": (-2**15, 2**15 - 1), "Integer 32": (-2**31, 2**31 - 1),
                 "Integer 64": (-2**63, 2**63 - 1), "Boolean": (None, None)}[kind]
    if low is None:
        return int(value != 0)
    return max(low, min(high, math.trunc(value)))


def same(wanted, actual):
    if wanted is Any:
        return True
    if isinstance(wanted, (int, float)) and isinstance(actual, (int, float)):
        return wanted == actual or (isinstance(wanted, float) and math.isclose(wanted, actual, rel_tol=1e-15))
    return type(wanted) is type(actual) and wanted == actual


def compare(source, destination, source_model, destination_model):
    """The finished Comparison of two store paths; Unjudged where something was left out and nothing differs."""
    with Store(source) as a, Store(destination) as b:
        found = Comparison(a, b, source_model, destination_model).run()
    if found.unjudged and not found.total:
        raise Unjudged(found.unjudged[0])
    return found
