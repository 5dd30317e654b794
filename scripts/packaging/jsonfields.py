"""The fields of the lines that --json prints, read from the Swift types that are encoded."""
import functools
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCES = os.path.join(ROOT, "Sources")

# Event, Swift type, its file, and the commands that print it. A test compares the events with the sources.
LINES = [
    ("result", "MigrationResult", "Fleet/MigrationResult.swift", "migrate, plan, run, rehearse: what became of a store"),
    ("result", "FailureLine", "Commands/Output.swift", "any command that failed before it knew a store"),
    ("plan, stage, unit-finished, …", "RunEvent", "Fleet/RunEvent.swift",
     "migrate: what happens meanwhile; also in `events.jsonl` of the run directory"),
    ("pipeline", "PipelineStart", "Fleet/Pipeline/PipelineSummary.swift", "run, plan: the first line"),
    ("retry", "Retry", "Commands/PipelineReport.swift", "run: a store is tried again later"),
    ("wave", "WaveStart", "Fleet/Pipeline/PipelineSummary.swift", "run: a canary wave begins"),
    ("summary", "PipelineSummary", "Fleet/Pipeline/PipelineSummary.swift", "run, plan, rehearse: the last line"),
    ("submit", "ClusterSubmission", "Fleet/Cluster/ClusterArray.swift", "run on a cluster: tasks were submitted"),
    ("fleet-plan", "FleetPlan", "Fleet/Pipeline/FleetPlan.swift", "plan of a pipeline"),
    ("store", "StoreInspection", "Fleet/StoreInspection.swift", "inspect; verify of a store"),
    ("result", "PipelineVerification.Item", "Fleet/Pipeline/PipelineVerification.swift", "verify of a pipeline"),
    ("summary", "PipelineVerification.Summary", "Fleet/Pipeline/PipelineVerification.swift",
     "verify of a pipeline: the last line"),
    ("result", "Rollback.Item", "Fleet/Pipeline/Rollback.swift", "rollback"),
    ("summary", "Rollback.Summary", "Fleet/Pipeline/Rollback.swift", "rollback: the last line"),
    ("status", "PipelineStatus", "Fleet/Pipeline/PipelineStatus.swift", "status"),
    ("run", "HistoryRecord.Run", "Commands/StatusCommand.swift", "history"),
    ("attempt", "HistoryRecord.Attempt", "Commands/StatusCommand.swift", "history of a store"),
    ("report", "RunReport", "Ledger/RunReport.swift", "report"),
    ("backup", "BackupRecord", "Commands/BackupsCommand.swift", "backups list; history of a store"),
    ("backup", "BackupPruning.Item", "Fleet/Pipeline/BackupPruning.swift", "backups prune"),
    ("summary", "BackupTotals", "Commands/BackupsCommand.swift", "backups list: the last line"),
    ("summary", "BackupPruning.Summary", "Fleet/Pipeline/BackupPruning.swift", "backups prune: the last line"),
    ("quarantine", "QuarantineRecord", "Commands/QuarantineCommand.swift", "quarantine list"),
    ("summary", "QuarantineTotals", "Commands/QuarantineCommand.swift", "quarantine list: the last line"),
    ("released", "ReleaseRecord", "Commands/QuarantineCommand.swift", "quarantine release"),
    ("export", "FailureReduction.Outcome", "Fleet/Pipeline/FailureReduction.swift", "quarantine export"),
    ("progress", "RunProgress", "Fleet/Pipeline/RunControl.swift", "control status"),
    ("control", "ControlRecord", "Commands/ControlCommand.swift", "control pause, resume, limit"),
    ("check", "Doctor.Finding", "Fleet/Doctor.swift", "doctor"),
    ("result", "RepairReport", "Repair/RepairReport.swift", "repair"),
    ("result", "FixtureLine", "Commands/FixtureCommand.swift", "fixture"),
    ("version", "VersionRecord", "Commands/ModelCommand.swift", "model list, model hash"),
    ("model", "ModelRecord", "Commands/ModelRecord.swift", "model show"),
    ("diff", "DifferenceRecord", "Commands/DifferenceRecord.swift", "model diff"),
    ("result", "BundleLine", "Commands/ModelEditCommands.swift", "model add-version, model set-current"),
    ("result", "InferenceLine", "Commands/MappingCommand.swift", "mapping infer"),
    ("finding", "MappingFindingLine", "Commands/MappingCheckCommand.swift", "mapping check"),
    ("result", "MappingCheckLine", "Commands/MappingCheckCommand.swift", "mapping check: the last line"),
    ("result", "MappingFileLine", "Commands/MappingFileCommands.swift", "mapping new, mapping convert"),
]
# Swift types that are one JSON value.
PLAIN = {"String": "text", "Int": "number", "Int64": "number", "Int32": "number", "UInt32": "number", "Double": "number", "UUID": "text",
         "Bool": "true, false"}
DECLARATION = re.compile(r"(\s*)(?:@\w+ |\w+(?:\(set\))? )*?(struct|enum|class|extension) ([\w.]+)(?:<[^>]*>)?(?:: ([^{]*))?")
FIELD = re.compile(r"(?:(?:public|package|private\(set\)|public private\(set\)|package private\(set\)) )*"
                   r"(?:var|let) `?(\w+)`?(?:: ([^={]+?))?(?: = ([^{]*))?\s*$")


def body(lines, name):
    """The lines inside a type; KeyError where there is none."""
    for part in name.split("."):
        for number, line in enumerate(lines):
            found = re.match(rf"(\s*).*\b(?:struct|enum|extension) {part}\b.*\{{\s*$", line)
            if found and not line.strip().startswith("//"):
                end = next(i for i in range(number + 1, len(lines)) if lines[i].startswith(found[1] + "}"))
                inside = lines[number + 1:end]
                if any(FIELD.match(x.strip()) or "struct" in x for x in inside):
                    lines = inside
                    break
        else:
            raise KeyError(name)
    return lines


def renamed(lines, indent):
    """{Swift name: JSON name} of the type's own CodingKeys; none where every field keeps its name."""
    text = "\n".join(lines)
    found = re.search(rf"^ {{{indent}}}(?:\w+ )*enum CodingKeys[^{{]*\{{(.*?)\n\s*\}}", text, re.S | re.M)
    if not found:
        return None
    names = {}
    for declaration in re.findall(r"\bcase\s+((?:.|\n)*?)(?=\n\s*case\b|\Z)", found[1]):
        for item in re.sub(r"\s+", " ", declaration).split(","):
            swift, _, other = item.strip().partition(" = ")
            if swift:
                names[swift] = other.strip('"') or swift
    return names


def literal(text, name):
    """The type of a field that has only a value."""
    for pattern, kind in ((r"(true|false)$", "Bool"), (r"-?\d+$", "Int"), (r"-?\d+\.\d+$", "Double"), (r'"', "String"),
                          (r"\[\]$", "[…]"), (r"\w+\.formatVersion$", "Int")):
        if re.match(pattern, text or ""):
            return kind
    made = re.match(r"([A-Z][\w.]*)\(\)$", text or "")
    if made:
        return made[1]
    raise ValueError(f"{name}: give the field a type, which {text} does not tell")


@functools.cache
def types():
    """{qualified name: [(kind, conformances, lines inside, path)]} of every type and extension of the sources."""
    declared = {}
    for base, _, names in os.walk(SOURCES):
        for name in sorted(n for n in names if n.endswith(".swift")):
            path = os.path.join(base, name)
            with open(path, encoding="utf-8") as file:
                lines, outer = file.read().split("\n"), []
            for number, line in enumerate(lines):
                found = None if line.lstrip().startswith("//") else DECLARATION.match(line)
                if not found:
                    continue
                outer = [(indent, own) for indent, own in outer if indent < len(found[1])]
                own = ".".join([o for _, o in outer[-1:]] + [found[3]])
                end = next((i for i in range(number + 1, len(lines)) if lines[i].startswith(found[1] + "}")), number)
                outer.append((len(found[1]), own))
                declared.setdefault(own, []).append((found[2], found[4] or "", lines[number:end], path))
    return declared


def qualified(swift, inside):
    """The whole name of a type that is named inside of another one; None for one that the sources do not declare."""
    parts = inside.split(".")
    for count in range(len(parts), -1, -1):
        name = ".".join(parts[:count] + [swift])
        if any(kind != "extension" for kind, *_ in types().get(name, [])):
            return name
    return None


def value_kind(swift, inside=""):
    """A Swift type as JSON has it: what the type's own code says, never a guess."""
    swift = swift.rstrip("?")
    if swift.startswith("["):
        return "object" if re.match(r"\[[\w.]+: ", swift) else "list"
    if swift in PLAIN:
        return PLAIN[swift]
    name = qualified(swift, inside)
    if name is None:
        raise ValueError(f"{inside}: what {swift} is in JSON is not known")
    for kind, conformances, lines, _ in types()[name]:
        text = "\n".join(lines)
        if re.search(r"\bString\b", conformances) and kind == "enum" or re.search(r"\bvar rawValue: String|let rawValue: String", text):
            return "text"
        if "func encode(to" in text and ("unkeyedContainer()" in text or re.search(r"\.map \{.*\}\.encode\(to", text)):
            return "list"
        if "singleValueContainer()" in text and "func encode(to" in text:
            return "text or number" if "encode(number)" in text else "text"
    return "object"


def part(swift, inside):
    """The whole name of the type whose fields a value shows, in a list or by itself; None for a plain value."""
    swift = re.sub(r"^\[(?:[\w.]+: )?|\]$", "", swift.rstrip("?")).rstrip("?")
    if swift in PLAIN or not re.match(r"[\w.]+$", swift) or value_kind(swift, inside) != "object":
        return None
    return qualified(swift, inside)


@functools.cache
def parts():
    """[(whole name, path)] of the types inside of lines, each once, in the order in which lines show them."""
    found, queue = {}, [(name, path) for _, name, path, _ in LINES]
    lines = {name for name, _ in queue}
    while queue:
        name, path = queue.pop(0)
        for _, kind, _, _ in fields(name, path):
            inner = part(kind, name)
            if inner and inner not in found and inner not in lines:
                home = next(p for k, _, _, p in types()[inner] if k != "extension")
                found[inner] = os.path.relpath(home, SOURCES)
                queue.append((inner, found[inner]))
    return list(found.items())


@functools.cache
def fields(name, path):
    """[(JSON name, type, is optional, comment)] of a type."""
    with open(os.path.join(SOURCES, path), encoding="utf-8") as file:
        lines = body(file.read().split("\n"), name)
    indent = min(len(x) - len(x.lstrip()) for x in lines if x.strip())
    keys, comment, found = renamed(lines, indent), [], []
    for line in lines:
        depth, text = len(line) - len(line.lstrip()), line.strip()
        if not text or depth != indent:
            comment = comment if depth == indent else []
            continue
        if text.startswith("///"):
            comment.append(text[3:].strip())
            continue
        match = FIELD.match(text)
        if match and " static " not in f" {text}" and (keys is None or match[1] in keys):
            kind = (match[2] or literal(match[3], f"{name}.{match[1]}")).strip()
            found.append((keys[match[1]] if keys else match[1], kind.rstrip("?"), kind.endswith("?"),
                          " ".join(comment)))
        comment = []
    return found


def events():
    """Every word that a type's `event` has in the sources."""
    found = set()
    for base, _, names in os.walk(SOURCES):
        for name in names:
            if name.endswith(".swift"):
                with open(os.path.join(base, name), encoding="utf-8") as file:
                    found |= set(re.findall(r'var event = "([\w-]+)"', file.read()))
    return found


def run_events():
    """[(event, what it carries)] of a run, from the comment on its type."""
    with open(os.path.join(SOURCES, "Fleet", "RunEvent.swift"), encoding="utf-8") as file:
        return re.findall(r"^///     ([a-z-]+)\s+(.+)$", file.read(), re.M)
