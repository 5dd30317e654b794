"""Random managed object models: drawn from a seed, and kept valid.

`draw` makes a model, `modelchanges.change` the next version of one, `modelxml.write_bundle` puts versions on disk.
A model that is valid here is one that Xcode would compile: names are unique along a line of inheritance,
relationships lead to entities of the model and agree with their inverses.
"""
import copy
import dataclasses

NUMBERS = ["Integer 16", "Integer 32", "Integer 64", "Decimal", "Double", "Float", "Boolean"]
OTHERS = ["String", "String", "Date", "Binary", "UUID", "URI", "Transformable"]
TYPES = NUMBERS + OTHERS
COUNTS = NUMBERS[:-1]     # types of a derived count
UNIQUE = {"String", "Integer 32", "Integer 64", "Date", "UUID", "URI"}    # enough values to differ

KEYWORDS = ["select", "order", "group", "index", "table", "where", "from", "values", "primary", "unique", "rowid",
            "_rowid_", "oid", "self", "id", "description", "hash", "entity", "objectID", "class", "null", "reflexive",
            "_pk", "_ent", "_opt", "pk", "fok", "limit", "default", "check", "collate", "FUNCTION", "true", "nil", "any"]
FOREIGN = ["größe", "имя", "名前", "naïve", "straße", "ñandú", "βήτα", "ﬁn", "Ａx", "𝒜x", "ǆ", "ệ", "शब्द"]
WORDS = ["name", "title", "note", "count", "total", "date", "owner", "item", "items", "part", "parts", "tag", "tags",
         "photo", "rank", "code", "place", "kind", "state", "size", "a", "b", "a1", "b1", "nA", "Z", "x_y"]
LONG = "aPropertyWhoseNameGoesOnAndOnUntilNobodyRemembersHowItBeganOrWhatItWasMeantToSayInTheFirstPlace"
ENTITIES = ["Item", "Part", "Owner", "Tag", "Photo", "Book", "Page", "Note", "Order", "Group", "Select", "Index", "Table",
            "Values", "Größe", "Имя", "Strasse", "Straße", "名前", "Base", "Thing", "Metadata", "PrimaryKey", "Trigger",
            "Where", "A", "B", "A1", "Transaction", "AnEntityWhoseNameIsLongerThanAnyThatWasEverSeenInAStoreOfARealApplication"]
DEFAULTS = {"Integer 16": ["0", "1", "-7", "32767"], "Integer 32": ["0", "42", "-2147483648"],
            "Integer 64": ["0", "9007199254740993", "-1", "NO"], "Decimal": ["0", "1.5", "-0.01"],
            "Double": ["0", "0.1", "-3"], "Float": ["0", "0.1", "2.5"], "Boolean": ["YES", "NO", "1", "0"],
            "String": ["", "x", "it's \"quoted\" & <marked>", "größe", "0"], "Date": ["0", "600000000", "-1.5"],
            "UUID": ["12345678-9ABC-DEF0-1234-56789ABCDEF0"], "URI": ["https://example.org/a?b=c&d"]}


@dataclasses.dataclass
class Attribute:
    name: str
    type: str
    optional: bool = True
    default: str = None
    renaming: str = None
    modifier: str = None
    transient: bool = False
    external: bool = False
    indexed: bool = False       # the flag of old models
    rules: tuple = ()           # ((XML attribute, value), …): checked on saving, never by a lightweight migration
    derived: str = None         # the to-many relationship whose objects are counted
    elements: str = None        # the composite's name


@dataclasses.dataclass
class Relationship:
    name: str
    destination: str
    inverse: str = None
    many: bool = False
    ordered: bool = False
    optional: bool = True
    transient: bool = False
    minimum: int = 0
    maximum: int = 0
    rule: str = "Nullify"
    renaming: str = None
    modifier: str = None


@dataclasses.dataclass
class Entity:
    name: str
    parent: str = None
    abstract: bool = False
    renaming: str = None
    modifier: str = None
    properties: dict = dataclasses.field(default_factory=dict)
    unique: list = dataclasses.field(default_factory=list)      # [(property, …)]
    indexes: list = dataclasses.field(default_factory=list)     # [(name, [(property, ascending)])]


@dataclasses.dataclass
class Model:
    entities: dict = dataclasses.field(default_factory=dict)
    composites: dict = dataclasses.field(default_factory=dict)  # name -> [Attribute]
    identifier: str = ""

    def line(self, name):
        """The entity and what it inherits from, nearest first."""
        found = []
        while name and name in self.entities and name not in found:
            found.append(name)
            name = self.entities[name].parent
        return found

    def below(self, name):
        """The entity and everything that inherits from it."""
        return [n for n in self.entities if name in self.line(n)]

    def properties(self, name):
        """Own and inherited: name -> (declaring entity, property)."""
        return {p.name: (e, p) for e in reversed(self.line(name)) for p in self.entities[e].properties.values()}

    def taken(self, name):
        """The names that a new property of an entity must not have."""
        return {p for n in self.line(name) + self.below(name) for p in self.entities[n].properties}

    def relationships(self):
        return [(e.name, p) for e in self.entities.values() for p in e.properties.values() if isinstance(p, Relationship)]

    def attributes(self):
        return [(e.name, p) for e in self.entities.values() for p in e.properties.values() if isinstance(p, Attribute)]

    def inverse(self, relationship):
        """(declaring entity, relationship), or None."""
        if not relationship.inverse or relationship.destination not in self.entities:
            return None
        found = self.properties(relationship.destination).get(relationship.inverse)
        return found if found and isinstance(found[1], Relationship) else None


# ---------------------------------------------------------------- drawing

def property_name(rng, taken):
    for _ in range(40):
        dice = rng.random()
        name = rng.choice(KEYWORDS if dice < .12 else FOREIGN if dice < .2 else WORDS)
        if dice > .98:
            name = LONG[:rng.randint(60, len(LONG))]
        if dice < .06 or dice > .9:
            name += rng.choice(["1", "2", "X", "_", "Count"])
        if name not in taken:
            return name
    return "p" + "".join(rng.choice("abcdefghijklm") for _ in range(8))


def entity_name(rng, model):
    used = {n.upper() for n in model.entities}
    for _ in range(40):
        name = rng.choice(ENTITIES) + rng.choice(["", "", "", "2", "Old"])
        if name.upper() not in used:
            return name
    return "E" + "".join(rng.choice("abcdefghijklm") for _ in range(8))


def attribute(rng, name, model, kind=None):
    made = Attribute(name, kind or rng.choice(TYPES), optional=rng.random() < .7)
    if kind is None and rng.random() < .06:
        made.type, made.elements = "Composite", composite(rng, model)
    if made.type in DEFAULTS and rng.random() < (.35 if made.optional else .7):
        made.default = rng.choice(DEFAULTS[made.type])
    if made.type == "Binary":
        made.external = rng.random() < .5
    made.indexed = rng.random() < .08 and stored_in_column(made)
    if made.type in NUMBERS[:3] and made.default is None and rng.random() < .1:
        made.rules = (("minValueString", str(rng.choice([-5, 0, 1]))), ("maxValueString", "1000"))
    elif made.type == "String" and made.default is None and rng.random() < .1:
        made.rules = (("minValueString", "1"), ("maxValueString", str(rng.choice([8, 20, 200]))))
    made.transient = rng.random() < .05
    if made.transient and rng.random() < .3:
        made.type, made.default, made.elements = "Undefined", None, None
    return made


def composite(rng, model):
    if model.composites and rng.random() < .5:
        return rng.choice(sorted(model.composites))
    name = f"Form{len(model.composites)}"
    parts = {}
    for _ in range(rng.randint(1, 4)):
        part = Attribute(property_name(rng, parts), rng.choice(TYPES), rng.random() < .8)
        parts[part.name] = part
    if model.composites and rng.random() < .2:
        part = Attribute(property_name(rng, parts), "Composite", elements=rng.choice(sorted(model.composites)))
        parts[part.name] = part
    model.composites[name] = list(parts.values())
    return name


def add_attribute(rng, model, entity, kind=None):
    made = attribute(rng, property_name(rng, model.taken(entity)), model, kind)
    model.entities[entity].properties[made.name] = made
    return made


def add_count(rng, model, entity):
    """A derived attribute that counts a to-many relationship, or None where there is none."""
    counted = [n for n, (_, p) in model.properties(entity).items() if is_counted(p)]
    if not counted:
        return None
    made = Attribute(property_name(rng, model.taken(entity)), rng.choice(COUNTS), derived=rng.choice(counted))
    model.entities[entity].properties[made.name] = made
    return made


def add_relationship(rng, model, entity):
    """One of every kind: with an inverse or without, reflexive, to the own entity, to-one and to-many."""
    destination = rng.choice(sorted(model.entities)) if rng.random() < .85 else entity
    made = Relationship(property_name(rng, model.taken(entity)), destination, many=rng.random() < .5)
    model.entities[entity].properties[made.name] = made
    dice = rng.random()
    if entity == destination and dice < .25:
        made.inverse = made.name
    elif dice < .85:
        back = Relationship(property_name(rng, model.taken(destination)), entity, made.name, many=rng.random() < .5)
        model.entities[destination].properties[back.name] = back
        made.inverse = back.name
        settle(rng, back)
    settle(rng, made)
    return made


def settle(rng, relationship):
    relationship.optional = rng.random() < (.97 if not relationship.many else .85)
    relationship.rule = rng.choice(["Nullify", "Nullify", "Cascade", "Deny", "No Action"])
    relationship.ordered = relationship.many and bool(relationship.inverse) and rng.random() < .3
    relationship.transient = rng.random() < .04
    if relationship.many and rng.random() < .1:
        relationship.maximum = rng.randint(2, 9)


def add_constraint(rng, model, entity):
    names = [n for n, (_, p) in model.properties(entity).items()
             if isinstance(p, Attribute) and p.type in UNIQUE and not p.transient and not p.derived]
    if not names:
        return None
    chosen = tuple(rng.sample(sorted(names), min(len(names), rng.choice([1, 1, 1, 2, 3]))))
    model.entities[entity].unique.append(chosen)
    return chosen


def add_index(rng, model, entity):
    names = [n for n, (_, p) in model.properties(entity).items() if stored_in_column(p)]
    if not names:
        return None
    chosen = rng.sample(sorted(names), min(len(names), rng.choice([1, 1, 2, 3])))
    name = f"by{len(model.entities[entity].indexes)}_" + rng.choice(["x", "index", "order"])
    model.entities[entity].indexes.append((name, [(n, rng.random() < .7) for n in chosen]))
    return name


def is_counted(prop):
    """Whether a derived attribute may count it."""
    return isinstance(prop, Relationship) and prop.many and not prop.transient


def stored_in_column(prop):
    if isinstance(prop, Relationship):
        return not prop.many and not prop.transient
    return not prop.transient and prop.type not in ("Composite", "Undefined", "Transformable", "Binary")


def add_entity(rng, model, parent=None):
    made = Entity(entity_name(rng, model), parent, abstract=rng.random() < (.1 if parent else .2))
    model.entities[made.name] = made
    return made


def draw(rng, most=8):
    """A valid model of one to `most` entities."""
    model = Model(identifier=rng.choice(["", "", "1.0"]))
    for number in range(rng.randint(1, most)):
        inherits = number and rng.random() < .4
        add_entity(rng, model, rng.choice(sorted(model.entities)) if inherits else None)
    for name in sorted(model.entities):
        for _ in range(rng.choice([0, 1, 2, 3, 5, 9])):
            add_attribute(rng, model, name)
    for _ in range(rng.randint(0, 2 * len(model.entities))):
        add_relationship(rng, model, rng.choice(sorted(model.entities)))
    for name in sorted(model.entities):
        if rng.random() < .25:
            add_count(rng, model, name)
        if rng.random() < .25:
            add_constraint(rng, model, name)
        if rng.random() < .25:
            add_index(rng, model, name)
    return valid(model)


# ---------------------------------------------------------------- keeping a model valid

def valid(model):
    """The model without what Xcode would refuse."""
    model = copy.deepcopy(model)
    for entity in model.entities.values():
        if entity.parent not in model.entities or entity.name in model.line(entity.parent):
            entity.parent = None
    for name in sorted(model.entities, key=lambda n: len(model.line(n))):
        inherited = set(model.properties(model.entities[name].parent)) if model.entities[name].parent else set()
        own = model.entities[name].properties
        model.entities[name].properties = {p.name: p for p in own.values() if p.name not in inherited}
    for name, found in model.relationships():
        if found.destination not in model.entities:
            del model.entities[name].properties[found.name]
    for name, found in model.relationships():
        back = model.inverse(found)
        answer = back and back[1].inverse == found.name and model.inverse(back[1])
        if not answer or answer[1] is not found:
            found.inverse = None
        if found.inverse and back[1] is found and found.destination != name:
            found.inverse = None
        if found.inverse is None or not found.many:
            found.ordered = False
        if found.inverse:   # both sides or none: the judge looks for the columns of a side that is stored
            found.transient = back[1].transient = found.transient or back[1].transient
        if not found.many:
            found.minimum = found.maximum = 0
    for name, found in model.attributes():
        found.indexed = found.indexed and stored_in_column(found)
        if found.derived:
            counted = model.properties(name).get(found.derived)
            if not counted or not is_counted(counted[1]):
                del model.entities[name].properties[found.name]
    for name, entity in model.entities.items():
        here = model.properties(name)
        fits = lambda p: p in here and stored_in_column(here[p][1])
        unique = [c for c in entity.unique if all(fits(p) and not getattr(here[p][1], "derived", None) for p in c)]
        entity.unique = list(dict.fromkeys(unique))
        entity.indexes = [(n, parts) for n, parts in entity.indexes if all(fits(p) for p, _ in parts)]
    if all(e.abstract for e in model.entities.values()):
        next(iter(model.entities.values())).abstract = False
    return model
