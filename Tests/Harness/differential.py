"""A migration by a mapping model beside the inferred one of the same store, property by property.

Both mapping models are read in the text form. Where both make the objects of an entity of the same
source entity, and both give a property the source's property of the same name (or its default), both
destinations must hold the same values, pairs and orders. What they say differently is counted
apart, with the reason. Where keys were given out anew, the n-th object of an entity is the n-th.
"""
import collections
import re

from . import judge

if judge.ground.load_oracle():
    from oraclelib import logical
    from oraclelib.store import Store, quote

DEFAULT, OTHER = ("default",), ("expression",)
PLAIN = re.compile(r'^FUNCTION\(\$source, "valueForKey:", "([^"]+)"\)$')
RELATION = re.compile(r'^FUNCTION\(\$manager, "destinationInstancesForSourceRelationshipNamed:'
                      r'sourceInstances:", "([^"]+)", FUNCTION\(\$source, "valueForKey:", "([^"]+)"\)\)$')


class Entry:
    """One entity mapping of the text form."""

    def __init__(self):
        self.fields, self.rows = {}, {}

    def origin(self, name, source):
        """("source", property), DEFAULT or OTHER; `source` is the model of the source store."""
        value = self.rows.get(name)
        if value is None:
            value = "default" if self.fields.get("others") == "none" else "automatic"
        if value == "automatic":
            # A new property, which a mapping model's rows name, too, has nowhere to come from.
            return ("source", name) if name in source.properties(self.fields["source"]) else DEFAULT
        if value == "default":
            return DEFAULT
        plain, relation = PLAIN.match(value), RELATION.match(value)
        if plain:
            return ("source", plain[1])
        return ("source", relation[1]) if relation and relation[1] == relation[2] else OTHER


def entries(text):
    """The entity mappings of a text that `godwit mapping` wrote."""
    found, part = [], None
    for line in text.splitlines():
        if line.startswith("- "):
            found.append(Entry())
            line = "  " + line[2:]
        field, row = re.match(r"  (\S[^:]*):(?: (.*))?$", line), re.match(r"    (\S[^:]*): (.*)$", line)
        if not found:
            continue
        if field:
            part = field[1] if field[1] in ("attributes", "relationships") else None
            found[-1].fields[field[1]] = field[2]
        elif row and part:
            found[-1].rows[row[1].strip("'\"")] = row[2].strip("'") if row[2][:1] == "'" else row[2]
    return found


class Differential:
    """One destination made by a mapping model beside the inferred one."""

    def __init__(self, mapped, inferred, source, model, mapping_text, inferred_text):
        self.source = source
        self.a = logical.Logical(mapped, model)
        self.b = logical.Logical(inferred, model)
        self.model = self.a.model
        self.said = {"mapped": self._by_destination(mapping_text),
                     "inferred": self._by_destination(inferred_text)}
        self.counts = collections.Counter()
        self.skipped = collections.defaultdict(list)      # reason -> [Entity.property]
        self.differences = []
        self.keys = {}          # entity -> {key in the mapped destination: key in the inferred one}
        self.keeps_keys = True

    @staticmethod
    def _by_destination(text):
        found = collections.defaultdict(list)
        for entry in entries(text):
            if entry.fields.get("destination") and entry.fields.get("source"):
                found[entry.fields["destination"]].append(entry)
        return found

    @property
    def is_whole(self):
        return not self.skipped and not self.differences

    def run(self):
        concrete = [n for n in self.model.order if not self.model.entities[n].abstract]
        for name in concrete:
            self._match(name)
        for name in concrete:
            if name in self.keys:
                self._rows(name)
        for relation, other in zip(self.a.relations(), self.b.relations()):
            self._pairs(relation, other)
        return self

    def differ(self, text):
        self.differences.append(text)

    # -- which objects belong together

    def _match(self, name):
        here, there = self.said["mapped"][name], self.said["inferred"][name]
        ours = [row[0] for row in self.a.rows(name, False)]
        theirs = [row[0] for row in self.b.rows(name, False)]
        if not here and not there:
            if ours or theirs:
                self.differ(f"{name}: objects that no entity mapping makes")
            self.keys[name] = {}
        elif not here:
            if ours:
                self.differ(f"{name}: {len(ours)} objects that no entity mapping makes")
            self._skip(name, "no entity mapping makes the objects")
        elif len(here) > 1:
            self._skip(name, "several entity mappings make the objects")
        elif "filter" in here[0].fields or "source-expression" in here[0].fields:
            self._skip(name, "a filter leaves objects out")
        elif not there or there[0].fields["source"] != here[0].fields["source"]:
            self._skip(name, "the objects come of another entity than is inferred")
        elif len(ours) != len(theirs):
            self.differ(f"{name}: {len(ours)} objects, inferred {len(theirs)}")
        else:
            self.keys[name] = dict(zip(ours, theirs))
            self.keeps_keys = self.keeps_keys and ours == theirs
            self.counts["objects"] += len(ours)

    def _skip(self, name, reason):
        for prop in self.model.properties(name).values():
            if not prop[1].transient and prop[1].kind != "fetched":
                self.skipped[reason].append(f"{name}.{prop[1].name}")

    # -- attributes, and to-one relationships that no to-many says already

    def _origins(self, name, prop):
        return tuple(self.said[side][name][0].origin(prop, self.source) if self.said[side][name] else DEFAULT
                     for side in ("mapped", "inferred"))

    def _rows(self, name):
        if not self.keys[name]:
            return
        places, kinds = [], []
        for place, (label, _, _) in enumerate(self.a.columns(name, True)):
            prop = self.model.properties(name).get(label, self.model.properties(name).get(label.split(".")[0]))[1]
            if prop.kind == "relationship":
                inverse = self.model.inverse(prop)
                if (inverse is None or not inverse[1].many) and self._speaks_same(name, prop):
                    places.append((place + 1, label, self._target_keys(prop)))
                continue
            ours, theirs = self._origins(name, prop.name)
            if prop.derived is None and (ours != theirs or OTHER in (ours, theirs)):
                self.skipped[self._why(ours)].append(f"{name}.{label}")
                continue
            places.append((place + 1, label, None))
        self.counts["properties"] += len(places)
        for ours, theirs in zip(self.a.rows(name, True), self.b.rows(name, True)):
            for place, label, targets in places:
                x, y = ours[place], theirs[place]
                if targets is not None and x is not None:
                    x = targets.get(x, ("no object", x))
                self.counts["values"] += 1
                if x != y or type(x) is not type(y):
                    self.differ(f"{name}.{label} of Z_PK {ours[0]}")

    @staticmethod
    def _why(origin):
        return {"expression": "an expression gives the value",
                "default": "the mapping model leaves the property at its default",
                "source": "inference takes the value from elsewhere, or from nowhere"}[origin[0]]

    def _target_keys(self, prop):
        found = {}
        for name in self.model.concrete(prop.destination):
            found.update(self.keys.get(name, {}))
        return found

    # -- relationships

    def _speaks_same(self, owner, prop):
        """True when both mapping models set a relationship alike; else counts why not."""
        inverse = self.model.inverse(prop)
        sides = [(n, prop.name) for n in self.model.concrete(owner)]
        others = [(n, inverse[1].name) for n in self.model.concrete(inverse[0])] if inverse else []
        targets = self.model.concrete(prop.destination)
        reason = None
        if any(n not in self.keys for n, _ in sides + others) or any(n not in self.keys for n in targets):
            reason = "a relationship with objects that are not compared"
        else:
            words = {self._side(side) for side in (sides, others) if side}
            if "differs" in words or words != {"unset"} and "same" not in words:
                reason = "a relationship that the mapping model sets otherwise"
        if reason:
            self.skipped[reason].append(f"{owner}.{prop.name}")
        return reason is None

    def _side(self, places):
        """same, unset (by both), missing (by the mapping model only) or differs."""
        words = set()
        for name, prop in places:
            if not self.keys[name]:
                continue
            ours, theirs = self._origins(name, prop)
            words.add("differs" if OTHER in (ours, theirs)
                      else ("unset" if ours == DEFAULT else "same") if ours == theirs
                      else "missing" if ours == DEFAULT else "differs")
        return words.pop() if len(words) == 1 else "differs" if words else "same"

    def _pairs(self, relation, other):
        owner, prop = relation[:2]
        if not self._speaks_same(owner, prop):
            return
        owners, targets = {}, self._target_keys(prop)
        for name in self.model.concrete(owner):
            owners.update(self.keys[name])
        is_ordered = prop.ordered and self._side([(n, prop.name) for n in self.model.concrete(owner)]) == "same"
        ours = self._lists(self.a, relation, is_ordered)
        theirs = self._lists(self.b, other, is_ordered)
        ours = {owners.get(k): [targets.get(t) for t in v] for k, v in ours.items()}
        self.counts["properties"] += 1
        self.counts["pairs"] += sum(len(v) for v in ours.values())
        self.counts["ordered lists"] += len(ours) if is_ordered else 0
        for key in sorted(set(ours) | set(theirs), key=str):
            x, y = ours.get(key, []), theirs.get(key, [])
            if (x if is_ordered else sorted(x, key=str)) != (y if is_ordered else sorted(y, key=str)):
                self.differ(f"{owner}.{prop.name} of Z_PK {key}: {len(x)} members, inferred {len(y)}")

    @staticmethod
    def _lists(side, relation, is_ordered):
        _, _, (column, members), target, fok = relation
        order = f", {quote(fok)}" if is_ordered and fok else ""
        found = collections.defaultdict(list)
        for owner, member in side.store.db.execute(
                f"SELECT {column}, {target} FROM {members} WHERE {column} IS NOT NULL "
                f"ORDER BY {column}{order}, {target}"):
            found[owner].append(member)
        return found


def compare(mapped, inferred, source_spec, spec, mapping_text, inferred_text):
    with Store(mapped) as a, Store(inferred) as b:
        source = judge.model(source_spec)
        return Differential(a, b, source, judge.model(spec), mapping_text, inferred_text).run()
