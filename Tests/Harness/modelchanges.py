"""What a developer does between two versions of a model: one random change at a time.

`change` gives a valid model and says what was done. Every kind of change is one function, here or in
`propertychanges`.
"""
import copy

from . import propertychanges, randommodels as r
from .modelchange import CHANGES, kind, pick_entity

assert propertychanges      # imported for the changes that it lists


def change(rng, model, number):
    """(the next version of a model, what was changed)."""
    model, said = copy.deepcopy(model), []
    while len(said) < number:
        function = rng.choice(CHANGES)
        done = function(rng, model)
        if done:
            said.append(f"{function.__name__.replace('_', ' ')}: {done}")
            model = r.valid(model)
    return model, said


def chain(rng, versions, most=12):
    """(models, what was changed before each but the first)."""
    models, said = [r.draw(rng)], []
    while len(models) < versions:
        model, changes = change(rng, models[-1], rng.randint(1, most))
        models.append(model)
        said.append(changes)
    return models, said


# ---------------------------------------------------------------- entities

@kind(2)
def add_entity(rng, model):
    made = r.add_entity(rng, model, rng.choice(sorted(model.entities)) if rng.random() < .4 else None)
    for _ in range(rng.randint(0, 3)):
        r.add_attribute(rng, model, made.name)
    if rng.random() < .5:
        r.add_relationship(rng, model, made.name)
    return made.name


@kind(2)
def remove_entity(rng, model):
    if len(model.entities) < 2:
        return None
    gone = pick_entity(rng, model)
    for name in model.below(gone.name):
        if model.entities[name].parent == gone.name:
            model.entities[name].parent = gone.parent if rng.random() < .5 else None
    del model.entities[gone.name]
    return gone.name


def _rename_entity(model, entity, name, keeps):
    renaming = entity.renaming or entity.name
    old, entity.name, entity.renaming = entity.name, name, renaming if keeps else None
    model.entities = {e.name: e for e in model.entities.values()}
    for other in model.entities.values():
        other.parent = name if other.parent == old else other.parent
    for _, found in model.relationships():
        found.destination = name if found.destination == old else found.destination


@kind(2)
def rename_entity(rng, model):
    entity, keeps = pick_entity(rng, model), rng.random() < .8
    name = entity.name.swapcase() if rng.random() < .1 else r.entity_name(rng, model)
    if name in model.entities:
        return None
    said = f"{entity.name} to {name}{'' if keeps else ' without identifier'}"
    _rename_entity(model, entity, name, keeps)
    return said


@kind()
def swap_entity_names(rng, model):
    if len(model.entities) < 2:
        return None
    a, b = (model.entities[n] for n in rng.sample(sorted(model.entities), 2))
    first, second = a.name, b.name
    _rename_entity(model, a, " between ", True)
    _rename_entity(model, b, first, True)
    _rename_entity(model, a, second, True)
    return f"{first} and {second}"


@kind()
def toggle_abstract(rng, model):
    entity = pick_entity(rng, model)
    entity.abstract = not entity.abstract
    return f"{entity.name} {entity.abstract}"


@kind(2)
def change_parent(rng, model):
    entity = pick_entity(rng, model)
    root = model.line(entity.name)[-1]
    same_tree = [n for n in model.below(root) if entity.name not in model.line(n)]
    choices = [None] + same_tree
    if not same_tree or rng.random() < .2:      # rows of two tables cannot come into one, unless one is new
        choices = sorted(set(model.entities) - set(model.below(entity.name)))
    parent = rng.choice(choices) if choices else None
    if parent == entity.parent:
        return None
    entity.parent = parent
    return f"{entity.name} below {parent}"


@kind()
def insert_parent(rng, model):
    entity = pick_entity(rng, model)
    made = r.add_entity(rng, model, entity.parent)
    entity.parent, made.abstract = made.name, rng.random() < .7
    return f"{made.name} above {entity.name}"


@kind()
def change_entity_modifier(rng, model):
    entity = pick_entity(rng, model)
    entity.modifier = (entity.modifier or "") + "m"
    return entity.name


# ---------------------------------------------------------------- constraints and indexes

@kind(2)
def add_constraint(rng, model):
    entity = pick_entity(rng, model)
    made = r.add_constraint(rng, model, entity.name)
    return made and f"{entity.name} {made}"


@kind()
def remove_constraint(rng, model):
    found = sorted(n for n, e in model.entities.items() if e.unique)
    if not found:
        return None
    entity = model.entities[rng.choice(found)]
    return f"{entity.name} {entity.unique.pop(rng.randrange(len(entity.unique)))}"


@kind()
def change_index(rng, model):
    entity = pick_entity(rng, model)
    if entity.indexes and rng.random() < .5:
        return f"{entity.name} without {entity.indexes.pop()[0]}"
    made = r.add_index(rng, model, entity.name)
    return made and f"{entity.name} {made}"
