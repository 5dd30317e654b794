"""Every third-party mapping model: read, converted to text, read back, checked with its models.

The check must name every policy class that a mapping model lacks and every selector that its
expressions call, which is counted here from the files themselves, and find nothing else wrong but
what is listed below.
"""
import argparse
import base64
import collections
import os
import plistlib
import sys
import time
import xml.etree.ElementTree as ET

from . import ground, tool

MAPPINGS = os.path.join(ground.SHARED, "corpus-mappings")
# Coverage is a person's choice: an entity left out is dropped or starts empty, and that is legal.
CHOICES = {"uncovered-source", "uncovered-destination"}
MISSING = {"missing-policy", "missing-policy-selector"}
# What is really wrong with a file, named by kind and mapping.
DEFECTS = {
    # The row names NoteToNote where AttachmentToImageAttachment was meant.
    "kodecocodes-cdt-materials__UnCloudNotesMappingModel-v3-to-v4": {("yields-nothing", "NoteToNote")},
    # An optional attribute becomes a required one, and is handed on as it is.
    "kodecocodes-cdt-materials__UnCloudNotesMappingModel-v2-to-v3": {("required-without-value", "NoteToAttachment")},
    "rileytestut-Delta__Delta3ToDelta4": {("required-without-value", "CheatToCheat")},
    # An entity mapping that Xcode left behind.
    "rileytestut-Delta__Delta4ToDelta5": {("empty-mapping", "Mapping")},
}


def mapping_file(folder):
    for name in ("mapping.xcmappingmodel", "mapping.cdm"):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    return None


def called(archive):
    """The selectors that the expressions of a keyed archive ask $entityPolicy for."""
    objects = plistlib.loads(archive)["$objects"]
    found = set()
    for function in objects:
        if isinstance(function, dict) and "NSSelectorName" in function and "NSOperand" in function:
            operand = objects[function["NSOperand"].data]
            if isinstance(operand, dict) and "NSVariable" in operand:
                if objects[operand["NSVariable"].data] == "entityPolicy":
                    found.add(objects[function["NSSelectorName"].data])
    return found


def wanted_of_xml(path):
    """The policies and policy selectors that reachable entity mappings of an xcmapping.xml name."""
    objects = {o.get("id"): o for o in ET.parse(path).getroot().iter("object")}
    attributes = lambda o: {a.get("name"): a.text or "" for a in o.findall("attribute")}
    # Some files keep rows and mappings that belong to nothing any more.
    root = next((o for o in objects.values() if o.get("type") == "XDDEVMAPPINGMODEL"), None)
    reached, waiting = set(), list(_references(root)) if root is not None else list(objects)
    while waiting:
        name = waiting.pop()
        if name in objects and name not in reached:
            reached.add(name)
            kind = objects[name].get("type")
            waiting += _references(objects[name], {"entitymapping"} if kind != "XDDEVMAPPINGMODEL" else set())
    policies, selectors = set(), set()
    for name in reached:
        object = objects[name]
        values = attributes(object)
        if object.get("type") == "XDDEVENTITYMAPPING" and values.get("migrationpolicyclassname"):
            policies.add(values["migrationpolicyclassname"])
        if values.get("valueexpressiondata"):
            selectors |= called(base64.b64decode(values["valueexpressiondata"]))
    return policies, selectors


def _references(object, without=()):
    for relation in object.findall("relationship"):
        if relation.get("name") not in without:
            yield from (relation.get("idrefs") or "").split()


def wanted_of_archive(path):
    """The same of a .cdm."""
    with open(path, "rb") as file:
        archive = file.read()
    objects = plistlib.loads(archive)["$objects"]
    policies = {objects[o["NSEntityMigrationPolicyClassName"].data] for o in objects
                if isinstance(o, dict) and "NSEntityMigrationPolicyClassName" in o}
    return policies - {"$null"}, called(archive)


def trial(name, work):
    """One mapping model; gives a record."""
    folder = os.path.join(MAPPINGS, name)
    path = mapping_file(folder)
    record = {"name": name, "policies": [], "selectors": [], "choices": 0, "problems": []}
    problems = record["problems"]
    text, again = (os.path.join(work, f"{name}{n}.yaml") for n in ("", ".2"))
    for a, b in ((path, text), (text, again)):
        run = tool.run([ground.godwit(), "mapping", "convert", a, "-o", b, "--json"], timeout=60)
        if run.exit != 0:
            problems.append(f"convert {os.path.basename(a)}: {run.why()}")
            return record
    with open(text, "rb") as one, open(again, "rb") as two:
        if one.read() != two.read():
            problems.append("the text form changes when it is read and written again")
    models = [os.path.join(folder, f"{side}.xcdatamodel") for side in ("source", "destination")]
    reports = []
    for file in (path, text):
        run = tool.run([ground.godwit(), "mapping", "check", file, *models, "--json"], timeout=60)
        found = [line for line in run.lines if isinstance(line, dict) and line.get("event") == "finding"]
        if run.result is None or "isSound" not in run.result:
            old = [m for m in models if os.path.exists(os.path.join(m, "elements"))]
            if old and "Xcode 3" in run.stderr:
                # The models cannot be had; what the file says by itself can.
                run = tool.run([ground.godwit(), "mapping", "check", file, "--json"], timeout=60)
                found = [x for x in run.lines if isinstance(x, dict) and x.get("event") == "finding"]
                record["note"] = f"{os.path.basename(old[0])} is a binary model of Xcode 3: checked without models"
            else:
                problems.append(f"check {os.path.basename(file)}: {run.why()}")
                return record
        if (run.exit == 65) != any(f["severity"] == "error" for f in found):
            problems.append(f"check {os.path.basename(file)}: exit {run.exit} does not fit its findings")
        reports.append((found, run.result))
    (found, result), (found_again, _) = reports
    if found != found_again:
        problems.append("the text form is checked otherwise than the file it was made from")
    record["policies"], record["selectors"] = result["missingPolicies"], result["missingSelectors"]
    record["choices"] = sum(f["kind"] in CHOICES for f in found)
    xml = os.path.join(path, "xcmapping.xml")
    policies, selectors = wanted_of_xml(xml) if os.path.isdir(path) else wanted_of_archive(path)
    if set(record["policies"]) != policies:
        problems.append(f"policies {record['policies']}, the file names {sorted(policies)}")
    if "note" not in record and set(record["selectors"]) != selectors:
        problems.append(f"selectors {record['selectors']}, the file calls {sorted(selectors)}")
    others = [f for f in found if f["kind"] not in CHOICES | MISSING]
    known = DEFECTS.get(name, set())
    for finding in others:
        if (finding["kind"], finding.get("mapping")) not in known:
            problems.append(f"{finding['kind']} in {finding.get('mapping')}: {finding['message']}")
    record["defects"] = [f"{f['kind']}: {f.get('mapping')} {f.get('property') or ''}".strip()
                         for f in others if (f["kind"], f.get("mapping")) in known]
    if known - {(f["kind"], f.get("mapping")) for f in others}:
        problems.append(f"the known defect {known} is not found")
    return record


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/mapping-check", description=__doc__)
    parser.add_argument("--only", metavar="PART", default="", help="names that contain it")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(arguments)
    ground.skip_unless_shared("mapping models")
    names = [n for n in sorted(os.listdir(MAPPINGS)) if options.only in n and mapping_file(os.path.join(MAPPINGS, n))]
    began = time.monotonic()
    with ground.workspace("mappings") as work:
        records = [trial(name, work) for name in names]
    rows = []
    for record in records:
        rows.append((record["name"], "FAILED" if record["problems"] else "good", len(record["policies"]),
                     len(record["selectors"]), record["choices"]))
        # Long names would make the columns unreadable: one line each, below the row's.
        details = [(f"lacks {p}", *[""] * 4) for p in record["policies"] + record["selectors"]]
        details += [(f"defect of the file: {d}", *[""] * 4) for d in record.get("defects", [])]
        details += [(record["note"], *[""] * 4)] if "note" in record else []
        rows += [("    " + d[0], *d[1:]) for d in details]
    print(ground.table(rows, ("mapping model", "outcome", "policies", "selectors", "left out")))
    for record in records:
        for problem in record["problems"]:
            print(f"{record['name']}: {problem}")
    counts = collections.Counter(bool(r["problems"]) for r in records)
    print(f"{len(records)} mapping models, {counts[False]} good, {counts[True]} failed, "
          f"{sum(bool(r['policies']) for r in records)} lack policies, {time.monotonic() - began:.0f} s")
    if options.json:
        ground.write_json(options.json, records)
    return 1 if counts[True] else 0


if __name__ == "__main__":
    sys.exit(main())
