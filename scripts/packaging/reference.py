#!/usr/bin/env python3
"""Writes the reference pages of the documentation from what the code says of itself: commands and options
from the executable's help, keys from the JSON Schemas.

    godwit --experimental-dump-help | reference.py --directory Sources/Godwit/Godwit.docc

Examples stand in examples.json: every command, option and key has one, which a test checks.
"""
import argparse
import json
import os
import re
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import jsonfields  # noqa: E402
import manual  # noqa: E402

GENERATED = "<!-- Written by scripts/docs --reference. Change the command's help, or the schema, instead. -->"
PAGES = ("Commands.md", "PipelineFile.md", "MappingFile.md", "JSONOutput.md")


def examples():
    with open(os.path.join(ROOT, "scripts", "packaging", "examples.json"), encoding="utf-8") as file:
        return json.load(file)


def prose(text):
    """Text whose options are marked as code: two hyphens would become a dash."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"(?<![\w-])(--[a-z][\w-]*)", r"`\1`", part) for part in parts[::2]]
    return "`".join(parts)


def cell(text):
    """Text in a table."""
    return prose(" ".join(text.split())).replace("|", "\\|")


def code(lines):
    """A block of commands or YAML."""
    return ["", *("    " + line for line in lines), ""]


def spelling(argument):
    """An option as it is typed: its names and its value."""
    value = argument.get("valueName", "")
    if argument["kind"] == "positional":
        return f"`{value.upper()}`" + (" …" if argument.get("isRepeating") else "")
    names = sorted(manual.names(argument), key=lambda n: (not n.startswith("--"), n))
    return ", ".join(f"`{n}{' ' + value.upper() if argument['kind'] == 'option' else ''}`" for n in names)


def meaning(argument):
    """What an argument is for."""
    text = [manual.sentence(argument.get("abstract")), manual.sentence(argument.get("discussion"))]
    if argument.get("allValues"):
        text.append("One of " + ", ".join(f"`{v}`" for v in argument["allValues"]) + ".")
    default = argument.get("defaultValue")
    if default and argument["kind"] == "option" and "efault" not in text[0]:
        text.append(f"Default: `{default}`.")
    if argument.get("isRepeating") and argument["kind"] == "option" and not re.search("(?i)more than once|may repeat", text[0]):
        text.append("May be given more than once.")
    return cell(" ".join(filter(None, text)))


def commands(root, shown):
    """Commands.md"""
    yield "# Commands"
    yield ""
    yield "Every command with its options, and examples that use each of them."
    yield ""
    yield GENERATED
    yield ""
    yield "## Overview"
    yield ""
    for paragraph in root["discussion"].split("\n\n"):
        yield from (prose(paragraph), "")
    yield "`godwit help COMMAND` and the manual pages (`man godwit-migrate`) say the same. Exit codes, verdicts and"
    yield "reasons are in <doc:Outcomes>, the lines of `--json` in <doc:JSONOutput>."
    yield ""
    yield from ("| option of every command | meaning |", "| --- | --- |",
                "| `--help`, `-h` | Prints the command's help. |",
                "| `--version` | Of `godwit` alone: prints the version. |",
                "| `--generate-completion-script SHELL` | Of `godwit` alone: prints completions for bash, zsh or fish. |")
    for words, command in manual.pages(["godwit"], root):
        if manual.shown(command):
            if len(words) > 1:
                yield from ("", f"## {' '.join(words)}", "", prose(manual.sentence(command["abstract"])))
            continue
        yield from ("", f"## {' '.join(words)}", "", prose(manual.sentence(command["abstract"])))
        if command.get("discussion"):
            yield from ("", prose(command["discussion"].strip()))
        yield from code(shown.get(" ".join(words[1:]), []))
        rows = [a for a in command.get("arguments", []) if manual.is_shown(a)]
        if rows:
            yield from ("| argument | meaning |", "| --- | --- |")
            yield from (f"| {spelling(a)} | {meaning(a)} |" for a in rows)


def resolved(schema, root):
    """A schema with its reference followed."""
    if "$ref" not in schema:
        return schema
    target = root
    for step in schema["$ref"].removeprefix("#/").split("/"):
        target = target[step]
    return target | {k: v for k, v in schema.items() if k != "$ref"}


def keys(schema, root, path=()):
    """(path, schema) of every key, from the outermost; what a list holds has a table of its own."""
    for name, value in schema.get("properties", {}).items():
        value = resolved(value, root)
        yield path + (name,), value
        for inner in [value, *value.get("oneOf", [])]:
            yield from keys(resolved(inner, root), root, path + (name,))


def kinds(schema, root):
    """What values a key takes, in a few words."""
    schema = resolved(schema, root)
    found = []
    for inner in schema.get("oneOf", schema.get("anyOf", [schema])):
        inner = resolved(inner, root)
        if "enum" in inner:
            found += [f"`{v}`" for v in inner["enum"]]
        elif "const" in inner:
            found.append(f"`{inner['const']}`")
        elif inner.get("type") == "object":
            found.append("a map")
        elif inner.get("type") == "array":
            found.append("a list")
        else:
            types = inner.get("type", "string")
            found += [{"string": "text", "integer": "a whole number", "number": "a number",
                       "boolean": "`true`, `false`", "null": "`null`"}[t]
                      for t in ([types] if isinstance(types, str) else types)]
    return " or ".join([", ".join(dict.fromkeys(found[:-1])), found[-1]] if len(found) > 1 else found)


def key_table(schema, root, shown):
    yield from ("| key | value | meaning | example |", "| --- | --- | --- | --- |")
    for path, value in keys(schema, root):
        name = ".".join(path)
        text = value.get("description", "")
        if "default" in value:
            text += f" Default: `{json.dumps(value['default']).strip(chr(34))}`."
        yield f"| `{name}` | {kinds(value, root)} | {cell(text)} | `{shown.get(name, '')}` |"


def pipeline_file(schema, shown):
    """PipelineFile.md"""
    yield from ("# The pipeline file", "", manual.sentence(schema["description"]), "", GENERATED, "", "## Overview",
                "", "A pipeline is a folder with a `pipeline.yaml`. `pipeline.schema.json` tells its keys to an editor;",
                "an unknown key is an error, with a suggestion.")
    yield from code(shown["whole"])
    yield from ("## Keys", "")
    yield from key_table(schema, schema, shown)


def mapping_file(schema, shown):
    """MappingFile.md"""
    yield from ("# The mapping model file", "", manual.sentence(schema["description"]), "", GENERATED, "",
                "## Overview", "",
                "Mapping models are read as Xcode has them (`.xcmappingmodel`, `.cdm`) or as YAML.",
                "`godwit mapping new` writes one that begins with what can be inferred, `godwit mapping convert` writes",
                "any form as YAML, the only one that is written, and `godwit mapping check` judges one against the two models. What may",
                "stand for a value is in <doc:Expressions>.")
    yield from code(shown["whole"])
    yield from ("## Keys", "")
    yield from key_table(schema, schema, shown)
    yield from ("", "## Keys of an entity mapping", "")
    yield from key_table(schema["$defs"]["entity-mapping"], schema, shown)
    yield from ("", "## Keys of a property", "",
                "`attributes` and `relationships` name destination properties. What stands for one is an expression,",
                "or a map:", "")
    yield from key_table(schema["$defs"]["rows"]["additionalProperties"]["anyOf"][1], schema, shown)
    yield from ("", "A relationship has two sides, and an assignment to one sets the other one, too. Where both have an",
                "expression, which `automatic` is as well, they are set one entity mapping after the other, and the",
                "last one stands: write `default` for the side that is to follow. References that are taken away are",
                "counted in `losses`, and the plan notes which sides contradict each other.")


def field_table(name, path, meanings):
    yield from ("", "| field | value | meaning |", "| --- | --- | --- |")
    for field, kind, is_optional, text in jsonfields.fields(name, path):
        if field == "event":
            continue
        text = re.sub(r"``([^`]*)``", lambda found: "`" + found[1].split("/")[-1] + "`", text)
        text = re.sub(r"\b(N|n)il\b", lambda found: "Absent" if found[1] == "N" else "absent", text)
        value, inner = jsonfields.value_kind(kind, name), jsonfields.part(kind, name)
        value += f" of {inner}" if inner and value == "list" else f", {inner}" if inner else ""
        yield f"| `{field}` | {value}{', or none' if is_optional else ''} | {cell(text or meanings.get(f'{name}.{field}') or meanings[field])} |"


def json_output(shown):
    """JSONOutput.md"""
    yield from ("# JSON output", "", "Every line that `--json` prints, and its fields.", "", GENERATED, "",
                "## Overview", "",
                "With `--json` every line of standard output is a JSON object, and `event` says what it is. Commands that",
                "list (`inspect`, `verify` of stores, `model list`, `history`, `quarantine list`, `doctor`) print a line for",
                "each; of the others the last line is the result. Fields may be added to and never change meaning; one that has no value is absent.",
                "Sizes are bytes, durations seconds, times seconds since 1970-01-01 UTC. No text holds row data.",
                "A command that is stopped by SIGTERM, SIGINT or SIGHUP ends with 75. The last line of `migrate`, `run`, `rollback`, `rehearse` and",
                "`plan` of a pipeline then says what was not done. Before these have begun, of `rollback` after a second signal, and",
                "of other commands, there is none.",
                "", "## Lines")
    for event, name, path, use in jsonfields.LINES:
        yield from ("", f"### {event}: {use}")
        yield from code([json.dumps(shown["lines"][name], ensure_ascii=False)])[:-1]
        if name == "RunEvent":
            yield from ("", "| event | carries |", "| --- | --- |")
            yield from (f"| `{word}` | {cell(text)} |" for word, text in jsonfields.run_events())
        yield from field_table(name, path, shown["fields"])
    yield from ("", "## Parts of lines")
    for name, path in jsonfields.parts():
        yield from ("", f"### {name}")
        yield from field_table(name, path, shown["fields"])


def schema_of(name):
    with open(os.path.join(ROOT, "Pipelines", name + ".schema.json"), encoding="utf-8") as file:
        return json.load(file)


def pages(root):
    """{name: text} of the pages, for a dump of the commands' help."""
    shown = examples()
    texts = (commands(root, shown["commands"]), pipeline_file(schema_of("pipeline"), shown["pipeline"]),
             mapping_file(schema_of("mapping"), shown["mapping"]), json_output(shown))
    return {name: "\n".join(lines).replace("\n\n\n", "\n\n").rstrip() + "\n" for name, lines in zip(PAGES, texts)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--directory", required=True)
    options = parser.parse_args()
    for name, text in pages(json.load(sys.stdin)["command"]).items():
        with open(os.path.join(options.directory, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
