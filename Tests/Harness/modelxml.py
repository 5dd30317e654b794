"""Models as Xcode writes them: `contents` XML in `.xcdatamodel` folders of an `.xcdatamodeld` bundle."""
import os
from xml.sax.saxutils import quoteattr

from .randommodels import Relationship


def _words(**values):
    return "".join(f" {k}={quoteattr(str(v))}" for k, v in values.items() if v is not None)


def _yes(value):
    return "YES" if value else None


def _attribute(found):
    date = found.type == "Date"
    return "<attribute" + _words(
        name=found.name, optional=_yes(found.optional), transient=_yes(found.transient),
        attributeType=None if found.type == "Undefined" else found.type,
        defaultValueString=None if date else found.default, defaultDateTimeInterval=found.default if date else None,
        elementID=found.renaming, versionHashModifier=found.modifier, elements=found.elements,
        allowsExternalBinaryDataStorage=_yes(found.external), derived=_yes(found.derived),
        derivationExpression=f"{found.derived}.@count" if found.derived else None,
        indexed=_yes(found.indexed), **dict(found.rules)) + "/>"


def _relationship(model, found):
    inverse = model.inverse(found)
    return "<relationship" + _words(
        name=found.name, optional=_yes(found.optional), transient=_yes(found.transient), toMany=_yes(found.many),
        ordered=_yes(found.ordered),
        minCount=found.minimum or None, maxCount=1 if not found.many else found.maximum or None,
        deletionRule=found.rule, destinationEntity=found.destination,
        inverseName=found.inverse, inverseEntity=inverse[0] if inverse else None,
        elementID=found.renaming, versionHashModifier=found.modifier) + "/>"


def contents(model):
    """The XML of a model, as it stands in `X.xcdatamodel/contents`."""
    lines = ['<?xml version="1.0" encoding="UTF-8" standalone="yes"?>',
             '<model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0"'
             + _words(userDefinedModelVersionIdentifier=model.identifier) + ">"]
    for entity in model.entities.values():
        lines.append("  <entity" + _words(
            name=entity.name, parentEntity=entity.parent, isAbstract=_yes(entity.abstract), elementID=entity.renaming,
            versionHashModifier=entity.modifier, representedClassName=entity.name, syncable="YES") + ">")
        for found in sorted(entity.properties.values(), key=lambda p: (isinstance(p, Relationship), p.name)):
            lines.append("    " + (_relationship(model, found) if isinstance(found, Relationship) else _attribute(found)))
        for name, parts in entity.indexes:
            elements = "".join("<fetchIndexElement" + _words(property=p, type="Binary", order="ascending" if up else "descending")
                               + "/>" for p, up in parts)
            lines.append(f"    <fetchIndex{_words(name=name)}>{elements}</fetchIndex>")
        if entity.unique:
            inside = "".join("<uniquenessConstraint>" + "".join(f"<constraint{_words(value=p)}/>" for p in c)
                             + "</uniquenessConstraint>" for c in entity.unique)
            lines.append(f"    <uniquenessConstraints>{inside}</uniquenessConstraints>")
        lines.append("  </entity>")
    for name, parts in model.composites.items():
        lines.append(f"  <composite{_words(name=name)}>" + "".join(map(_attribute, parts)) + "</composite>")
    return "\n".join(lines + ["</model>", ""])


def write_bundle(folder, versions, name="Random"):
    """Writes versions as `NAME.xcdatamodeld`, the last one current; gives the paths of the `.xcdatamodel` folders."""
    bundle, paths = os.path.join(folder, name + ".xcdatamodeld"), []
    for number, model in enumerate(versions, 1):
        path = os.path.join(bundle, f"{name}{f' {number}' if number > 1 else ''}.xcdatamodel")
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, "contents"), "w", encoding="utf-8") as file:
            file.write(contents(model))
        paths.append(path)
    with open(os.path.join(bundle, ".xccurrentversion"), "w") as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0"><dict><key>_XCCurrentVersionName</key>'
                   f"<string>{os.path.basename(paths[-1])}</string></dict></plist>\n")
    return paths
