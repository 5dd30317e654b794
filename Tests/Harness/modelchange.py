"""What the changes of models share: how they are listed, and how one picks what it changes."""
from . import randommodels as r

CHANGES = []


def kind(weight=1):
    """A change; the more it weighs the more often it is drawn."""
    def note(function):
        CHANGES.extend([function] * weight)
        return function
    return note


def pick_entity(rng, model):
    return model.entities[rng.choice(sorted(model.entities))]


def pick(rng, found):
    """(entity's name, property), or (None, None)."""
    found = sorted(found, key=lambda f: (f[0], f[1].name))
    return rng.choice(found) if found else (None, None)


def pick_attribute(rng, model, fits=lambda p: True):
    return pick(rng, [f for f in model.attributes() if fits(f[1])])


def pick_relationship(rng, model, fits=lambda p: True):
    return pick(rng, [f for f in model.relationships() if fits(f[1])])
