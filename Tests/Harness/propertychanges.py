"""Changes of properties between two versions of a model; one function each. See `modelchanges`."""
from . import randommodels as r
from .modelchange import kind, pick, pick_attribute, pick_entity, pick_relationship


# ---------------------------------------------------------------- properties of both kinds

@kind(2)
def remove_property(rng, model):
    name, found = pick(rng, model.attributes() + model.relationships())
    if found is None:
        return None
    inverse = model.inverse(found) if isinstance(found, r.Relationship) else None
    del model.entities[name].properties[found.name]
    if inverse and inverse[1] is not found and rng.random() < .5:
        model.entities[inverse[0]].properties.pop(inverse[1].name, None)
    return f"{name}.{found.name}"


def _rename(model, entity, found, name, keeps=True):
    old = found.name
    found.renaming = (found.renaming or old) if keeps else None
    inverse = model.inverse(found) if isinstance(found, r.Relationship) else None
    found.name = name
    own = model.entities[entity]
    own.properties = {p.name: p for p in own.properties.values()}
    if inverse:
        inverse[1].inverse = name
    turn = lambda n: name if n == old else n
    for below in model.below(entity):
        e = model.entities[below]
        e.unique = [tuple(map(turn, c)) for c in e.unique]
        e.indexes = [(n, [(turn(p), up) for p, up in parts]) for n, parts in e.indexes]
        for p in e.properties.values():
            if isinstance(p, r.Attribute) and p.derived:
                p.derived = turn(p.derived)


@kind(3)
def rename_property(rng, model):
    entity, found = pick(rng, model.attributes() + model.relationships())
    if found is None:
        return None
    keeps, old = rng.random() < .85, found.name
    name = old.swapcase() if rng.random() < .15 else r.property_name(rng, model.taken(entity))
    if name in model.taken(entity):
        return None
    _rename(model, entity, found, name, keeps)
    return f"{entity}.{old} to {name}{'' if keeps else ' without identifier'}"


@kind()
def swap_property_names(rng, model):
    entity = pick_entity(rng, model)
    if len(entity.properties) < 2:
        return None
    a, b = (entity.properties[n] for n in rng.sample(sorted(entity.properties), 2))
    first, second = a.name, b.name
    _rename(model, entity.name, a, " between ")
    _rename(model, entity.name, b, first)
    _rename(model, entity.name, a, second)
    return f"{entity.name}.{first} and {second}"


@kind(2)
def move_property(rng, model):
    entity, found = pick(rng, model.attributes() + model.relationships())
    if found is None:
        return None
    line = model.line(entity)[1:] + [n for n in model.below(entity) if n != entity]
    if not line:
        return None
    other = rng.choice(line)
    inverse = model.inverse(found) if isinstance(found, r.Relationship) else None
    del model.entities[entity].properties[found.name]
    if found.name in model.taken(other):
        model.entities[entity].properties[found.name] = found
        return None
    model.entities[other].properties[found.name] = found
    if inverse and inverse[1] is not found and rng.random() < .6:
        inverse[1].destination = other
    return f"{entity}.{found.name} to {other}"


@kind()
def change_kind(rng, model):
    entity, found = pick(rng, model.attributes() + model.relationships())
    if found is None:
        return None
    made = r.attribute(rng, found.name, model)
    if isinstance(found, r.Attribute):
        made = r.Relationship(found.name, rng.choice(sorted(model.entities)), many=rng.random() < .5)
    model.entities[entity].properties[found.name] = made
    return f"{entity}.{found.name}"


@kind()
def change_property_modifier(rng, model):
    entity, found = pick(rng, model.attributes() + model.relationships())
    if found is None:
        return None
    found.modifier = (found.modifier or "") + "m"
    return f"{entity}.{found.name}"


@kind(2)
def toggle_optional(rng, model):
    entity, found = pick(rng, [f for f in model.attributes() + model.relationships() if not getattr(f[1], "derived", None)])
    if found is None:
        return None
    found.optional = not found.optional
    if isinstance(found, r.Attribute) and not found.optional and found.type in r.DEFAULTS and rng.random() < .8:
        found.default = rng.choice(r.DEFAULTS[found.type])
    return f"{entity}.{found.name} {found.optional}"


# ---------------------------------------------------------------- attributes

@kind(3)
def add_attribute(rng, model):
    entity = pick_entity(rng, model)
    return f"{entity.name}.{r.add_attribute(rng, model, entity.name).name}"


@kind(2)
def change_type(rng, model):
    numbers = rng.random() < .8     # other types cannot be changed without a mapping model
    entity, found = pick_attribute(rng, model, lambda p: not p.derived and not p.elements and (not numbers or p.type in r.NUMBERS))
    if found is None:
        return None
    numeric = found.type in r.NUMBERS and rng.random() < .95
    old, found.type = found.type, rng.choice(r.NUMBERS if numeric else r.TYPES)
    found.external = found.external and found.type == "Binary"
    found.default = rng.choice(r.DEFAULTS[found.type]) if found.default and found.type in r.DEFAULTS else None
    found.rules, found.indexed = (), False
    return f"{entity}.{found.name} {old} to {found.type}"


@kind()
def change_default(rng, model):
    entity, found = pick_attribute(rng, model, lambda p: p.type in r.DEFAULTS and not p.derived)
    if found is None:
        return None
    found.default = rng.choice(r.DEFAULTS[found.type] + [None])
    return f"{entity}.{found.name} {found.default}"


@kind()
def toggle_transient(rng, model):
    attributes = [f for f in model.attributes() if not f[1].derived and f[1].type != "Undefined"]
    entity, found = pick(rng, attributes + model.relationships())
    if found is None:
        return None
    found.transient = not found.transient
    inverse = model.inverse(found) if isinstance(found, r.Relationship) else None
    if inverse:
        inverse[1].transient = found.transient
    return f"{entity}.{found.name} {found.transient}"


@kind()
def toggle_external(rng, model):
    entity, found = pick_attribute(rng, model, lambda p: p.type == "Binary")
    if found is None:
        return None
    found.external = not found.external
    return f"{entity}.{found.name} {found.external}"


@kind(2)
def add_count(rng, model):
    entity = pick_entity(rng, model)
    made = r.add_count(rng, model, entity.name)
    return made and f"{entity.name}.{made.name}"


@kind()
def toggle_derived(rng, model):
    entity, found = pick_attribute(rng, model, lambda p: p.derived or p.type in r.COUNTS)
    if found is None:
        return None
    counted = sorted(n for n, (_, p) in model.properties(entity).items() if r.is_counted(p))
    if found.derived and (rng.random() < .5 or not counted):
        found.derived = None
    elif counted:
        found.derived, found.optional, found.default, found.transient = rng.choice(counted), True, None, False
    else:
        return None
    return f"{entity}.{found.name} {found.derived}"


@kind()
def change_composite(rng, model):
    if not model.composites:
        return None
    name = rng.choice(sorted(model.composites))
    parts = model.composites[name]
    part = rng.choice(parts)
    dice = rng.random()
    if dice < .4:
        parts.append(r.Attribute(r.property_name(rng, {p.name for p in parts}), rng.choice(r.NUMBERS + ["String"])))
    elif dice < .7 and len(parts) > 1:
        parts.remove(part)
    elif part.type in r.NUMBERS:
        part.type = rng.choice(r.NUMBERS)
    else:
        part.optional = not part.optional
    return name


# ---------------------------------------------------------------- relationships

@kind(3)
def add_relationship(rng, model):
    entity = pick_entity(rng, model)
    return f"{entity.name}.{r.add_relationship(rng, model, entity.name).name}"


@kind(3)
def toggle_to_many(rng, model):
    promotes = rng.random() < .8    # the other way needs a mapping model
    entity, found = pick_relationship(rng, model, lambda p: not (promotes and p.many))
    if found is None:
        return None
    found.many = not found.many
    return f"{entity}.{found.name} {found.many}"


@kind(2)
def toggle_ordered(rng, model):
    entity, found = pick_relationship(rng, model, lambda p: p.many and p.inverse)
    if found is None:
        return None
    found.ordered = not found.ordered
    return f"{entity}.{found.name} {found.ordered}"


@kind(2)
def drop_inverse(rng, model):
    entity, found = pick_relationship(rng, model, lambda p: p.inverse)
    if found is None:
        return None
    back = model.inverse(found)
    found.inverse = back[1].inverse = None
    if rng.random() < .5 and back[1] is not found:
        model.entities[back[0]].properties.pop(back[1].name)
    return f"{entity}.{found.name}"


@kind(3)
def add_inverse(rng, model):
    entity, found = pick_relationship(rng, model, lambda p: not p.inverse)
    if found is None:
        return None
    alone = [p for p in model.entities[found.destination].properties.values()
             if isinstance(p, r.Relationship) and not p.inverse and p.destination == entity]
    if alone and rng.random() < .6:
        back = rng.choice(alone)
    else:
        back = r.Relationship(r.property_name(rng, model.taken(found.destination)), entity, many=rng.random() < .5)
        model.entities[found.destination].properties[back.name] = back
    back.inverse, found.inverse = found.name, back.name
    return f"{entity}.{found.name} by {back.name}"


@kind()
def swap_inverses(rng, model):
    entity, found = pick_relationship(rng, model, lambda p: p.inverse)
    back = found and model.inverse(found)
    if found is None or back[1] is found:
        return None
    others = [p for p in model.entities[entity].properties.values()
              if isinstance(p, r.Relationship) and p is not found and p.destination == found.destination and p is not back[1]]
    if not others:
        return None
    other = rng.choice(others)
    beyond = model.inverse(other)
    if beyond:
        beyond[1].inverse, found.inverse = found.name, beyond[1].name
    else:
        found.inverse = None
    back[1].inverse, other.inverse = other.name, back[1].name
    return f"{entity}.{found.name} and {other.name}"


@kind()
def change_destination(rng, model):
    """Needs a mapping model, but where no relationship of this name was there before."""
    if rng.random() < .6:
        return None
    entity, found = pick_relationship(rng, model)
    if found is None:
        return None
    near = model.line(found.destination) + model.below(found.destination)
    found.destination = rng.choice(near if rng.random() < .6 else sorted(model.entities))
    return f"{entity}.{found.name} to {found.destination}"


@kind()
def change_counts(rng, model):
    entity, found = pick_relationship(rng, model, lambda p: p.many)
    if found is None:
        return None
    found.minimum, found.maximum = rng.choice([(0, 0), (1, 0), (0, 5), (0, 2)])
    found.rule = rng.choice(["Nullify", "Cascade"])
    return f"{entity}.{found.name} {found.minimum} to {found.maximum}"
