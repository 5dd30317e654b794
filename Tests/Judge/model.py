"""Managed object models as Xcode writes them: the `contents` of an .xcdatamodel."""
import dataclasses
import os
import xml.etree.ElementTree as ElementTree

NUMBERS = ("Integer 16", "Integer 32", "Integer 64", "Decimal", "Double", "Float", "Boolean")
COLUMN = {"Integer 16": "INTEGER", "Integer 32": "INTEGER", "Integer 64": "INTEGER", "Boolean": "INTEGER",
          "Double": "FLOAT", "Float": "FLOAT", "Decimal": "DECIMAL", "String": "VARCHAR", "URI": "VARCHAR",
          "Date": "TIMESTAMP", "Binary": "BLOB", "UUID": "BLOB", "Transformable": "BLOB"}
# The groups in which columns are named, by the documented order of columns.
GROUP = {"Integer 16": 1, "Integer 32": 1, "Integer 64": 1, "Boolean": 1, "Double": 3, "Float": 3, "Date": 3,
         "Decimal": 4, "String": 5, "UUID": 6, "URI": 7, "Transformable": 8, "Binary": 9}


class Unjudged(Exception):
    """The model has something that this judge does not know."""


@dataclasses.dataclass
class Attribute:
    name: str
    type: str
    optional: bool
    default: str | None
    identifier: str
    external: bool
    derived: bool


@dataclasses.dataclass
class Relationship:
    name: str
    destination: str
    inverse: str | None
    many: bool
    ordered: bool
    optional: bool
    identifier: str


@dataclasses.dataclass
class Entity:
    name: str
    parent: str | None
    abstract: bool
    identifier: str
    properties: dict
    unique: list


class Model:
    """Entities by name, with what they inherit."""

    def __init__(self, path):
        if os.path.isdir(path):
            path = os.path.join(path, "contents")
        self.entities = {}
        for element in ElementTree.parse(path).getroot().findall("entity"):
            entity = _entity(element)
            self.entities[entity.name] = entity

    def line(self, name):
        """The entity and what it inherits from, nearest first."""
        while name:
            yield self.entities[name]
            name = self.entities[name].parent

    def root(self, name):
        return list(self.line(name))[-1].name

    def below(self, name):
        """The entity and everything that inherits from it."""
        return [n for n in self.entities if any(e.name == name for e in self.line(n))]

    def properties(self, name):
        """Own and inherited: {name: (declaring entity, property)}."""
        return {p.name: (e.name, p) for e in reversed(list(self.line(name))) for p in e.properties.values()}

    def inverse(self, relationship):
        """(declaring entity, relationship), or None."""
        return self.properties(relationship.destination).get(relationship.inverse) if relationship.inverse else None


def _entity(element):
    name = element.get("name")
    properties = {}
    for child in element:
        made = None
        if child.tag == "attribute" and child.get("transient") != "YES":
            made = _attribute(child, name)
        elif child.tag == "relationship" and child.get("transient") != "YES":
            made = Relationship(child.get("name"), child.get("destinationEntity"), child.get("inverseName"),
                                child.get("toMany") == "YES", child.get("ordered") == "YES",
                                child.get("optional") == "YES", child.get("elementID") or child.get("name"))
        elif child.tag == "composite":
            raise Unjudged(f"{name} has a composite attribute")
        if made:
            properties[made.name] = made
    unique = [tuple(part.get("value") for part in constraint.findall("constraint"))
              for constraint in element.findall("uniquenessConstraints/uniquenessConstraint")]
    return Entity(name, element.get("parentEntity"), element.get("isAbstract") == "YES",
                  element.get("elementID") or name, properties, unique)


def _attribute(element, entity):
    kind = element.get("attributeType", "")
    if kind not in COLUMN:
        raise Unjudged(f"{entity}.{element.get('name')} has the type {kind}")
    return Attribute(element.get("name"), kind, element.get("optional") == "YES",
                     element.get("defaultValueString", element.get("defaultDateTimeInterval")),
                     element.get("elementID") or element.get("name"),
                     element.get("allowsExternalBinaryDataStorage") == "YES", element.get("derived") == "YES")


def default_value(attribute):
    """A default as the store has it, or None for none; Unjudged where its form is not known here."""
    text, kind = attribute.default, attribute.type
    if text is None:
        return None
    if kind == "Boolean":
        return int(text.upper() in ("YES", "TRUE", "1"))
    if kind.startswith("Integer"):
        try:
            return int(text)
        except ValueError as error:
            raise Unjudged(f"the default {text} of {attribute.name}") from error
    if kind in ("Double", "Float", "Date", "Decimal"):
        import struct
        number = float(text)
        return struct.unpack("f", struct.pack("f", number))[0] if kind == "Float" else number
    if kind == "String":
        return text
    raise Unjudged(f"a default of the type {kind}, of {attribute.name}")
