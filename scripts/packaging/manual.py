#!/usr/bin/env python3
"""Writes manual pages from the commands' own help: godwit.1, and one page for each command.

    godwit --experimental-dump-help | manual.py --directory DIR --version VERSION --date YYYY-MM-DD

The form is mdoc(7). Options, arguments and defaults are the executable's; only what no option says, such as
exit codes and files, stands here.
"""
import argparse
import json
import os
import re
import sys

EXIT_CODES = [
    (0, "Done, or nothing to do."),
    (1, "Fatal: a mistake of godwit's own."),
    (3, "Finished, and some stores are not migrated."),
    (4, "Stopped by the failure budget."),
    (11, "Another run holds the lock."),
    (64, "Wrong use of the command."),
    (65, "The store, a model, a mapping model or the rows forbid it; the result says which and why."),
    (69, "Worker processes, or a program that a command needs, could not be started."),
    (73, "The output cannot be created."),
    (74, "Input or output error."),
    (75, "Stopped early, and resumable: signal, window, full disk, store in use or changed."),
    (78, "Invalid pipeline file or environment."),
]
FILES = [
    ("STORE.godwit/", "The run directory of a store that is being migrated. It may be deleted when nothing is under way."),
    ("pipeline.yaml", "What a fleet's stores are to become. pipeline.schema.json describes it to editors."),
    ("state/", "Beside the pipeline's file: how far its run is."),
]
ENVIRONMENT = [
    ("GODWIT_WORKER_TIMEOUT", "Seconds after which a worker that is stopped or silent is replaced. Default: 60."),
    ("NO_COLOR", "If set and not empty, nothing is coloured."),
]


def escaped(text):
    """Text that mdoc takes as text."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def paragraphs(text):
    """Paragraphs as lines of mdoc."""
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text.strip())):
        if paragraph.startswith("    "):
            yield from (".Bd -literal -offset indent", *map(escaped, map(str.strip, paragraph.split("\n"))), ".Ed")
            continue
        if number:
            yield ".Pp"
        # A sentence a line, as mdoc has it.
        yield re.sub(r"(?<=[a-zA-Z0-9)])(\.) (?=[A-Z])", r"\1\n", escaped(" ".join(paragraph.split())))


def sentence(text):
    """A short text as one that ends with a full stop."""
    text = " ".join((text or "").split())
    return text if not text or text.endswith((".", "?", ":")) else text + "."


def is_shown(argument):
    """Help and version are of every command, and stand on the first page."""
    names = {name["name"] for name in argument.get("names", [])}
    return argument.get("shouldDisplay", True) and not names & {"help", "version", "experimental-dump-help"}


def names(argument):
    """An option's names as they are typed."""
    for name in argument.get("names", []):
        yield ("--" if name["kind"] == "long" else "-") + name["name"]


def synopsis(command):
    """How the command is called."""
    for argument in command.get("arguments", []):
        if not is_shown(argument):
            continue
        value = argument.get("valueName", "")
        if argument["kind"] == "positional":
            line = f"Ar {escaped(value)}"
        else:
            first = escaped(next(names(argument)).lstrip("-"))
            line = f"Fl \\-{first}" if len(first) > 1 else f"Fl {first}"
            if argument["kind"] == "option":
                line += f" Ar {escaped(value)}"
        if argument.get("isOptional") or argument["kind"] == "flag":
            line = "Op " + line
        yield "." + line + (" Ns ..." if argument.get("isRepeating") else "")


def options(command):
    """What each argument means."""
    for argument in filter(is_shown, command.get("arguments", [])):
        if argument["kind"] == "positional":
            yield f".It Ar {escaped(argument['valueName'])}"
        else:
            typed = [("\\-" + escaped(n[2:])) if n.startswith("--") else escaped(n[1:]) for n in names(argument)]
            line = " , ".join(f"Fl {name}" for name in typed)
            if argument["kind"] == "option":
                line += f" Ar {escaped(argument['valueName'])}"
            yield f".It {line}"
        text = [sentence(argument.get("abstract")), sentence(argument.get("discussion"))]
        if argument.get("allValues"):
            text.append("One of: " + ", ".join(argument["allValues"]) + ".")
        default = argument.get("defaultValue")
        if default and argument["kind"] == "option" and "efault" not in text[0]:
            text.append(f"Default: {default}.")
        yield from paragraphs(" ".join(filter(None, text)))


def listing(title, entries, macro):
    """A section of names and their meanings."""
    yield f".Sh {title}"
    yield ".Bl -tag -width Ds"
    for name, text in entries:
        yield f".It {macro} {escaped(str(name))}"
        yield escaped(text)
    yield ".El"


def page(words, command, options_of):
    """The lines of one manual page."""
    name = "-".join(words)
    yield f".Dd {options_of.date}"
    yield f".Dt {name.upper()} 1"
    yield f".Os godwit {options_of.version}"
    yield ".Sh NAME"
    yield f".Nm {escaped(name)}"
    yield f".Nd {escaped(command['abstract'].strip().rstrip('.'))}"
    yield ".Sh SYNOPSIS"
    subcommands = shown(command)
    if subcommands:
        for subcommand in subcommands:
            yield f".Nm {escaped(' '.join(words + [subcommand['commandName']]))}"
            yield ".Ar ..."
    else:
        yield f".Nm {escaped(' '.join(words))}"
        yield from synopsis(command)
    yield ".Sh DESCRIPTION"
    yield escaped(sentence(command["abstract"]))
    if command.get("discussion"):
        yield ".Pp"
        yield from paragraphs(command["discussion"])
    if subcommands:
        yield ".Bl -tag -width Ds"
        for subcommand in subcommands:
            yield f".It Xr {name}-{subcommand['commandName']} 1"
            yield escaped(sentence(subcommand["abstract"]))
        yield ".El"
    elif any(map(is_shown, command.get("arguments", []))):
        yield ".Bl -tag -width Ds"
        yield from options(command)
        yield ".El"
    if len(words) == 1:
        yield from listing("ENVIRONMENT", ENVIRONMENT, "Ev")
        yield from listing("FILES", FILES, "Pa")
    yield from listing("EXIT STATUS", EXIT_CODES, "Er")
    if len(words) > 1:
        yield ".Sh SEE ALSO"
        yield f".Xr {'-'.join(words[:-1])} 1"


def shown(command):
    """The subcommands that users see."""
    return [c for c in command.get("subcommands", []) if c.get("shouldDisplay", True) and c["commandName"] != "help"]


def pages(words, command):
    """Every page: the words of its command, and the command."""
    yield words, command
    for subcommand in shown(command):
        yield from pages(words + [subcommand["commandName"]], subcommand)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--directory", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--date", required=True)
    arguments = parser.parse_args()
    root = json.load(sys.stdin)["command"]
    os.makedirs(arguments.directory, exist_ok=True)
    for words, command in pages(["godwit"], root):
        with open(os.path.join(arguments.directory, "-".join(words) + ".1"), "w", encoding="utf-8") as file:
            file.write("\n".join(page(words, command, arguments)) + "\n")


if __name__ == "__main__":
    main()
