"""Every command of README.md and of the tutorials, pasted in order into a shell: each has to end with 0.

Commands are the blocks marked as `sh`. A page is one shell, in the folder of the clone; whatever it makes
lies in a temporary folder.
"""
import argparse
import os
import re
import subprocess
import sys
import time

from . import ground, tool

CATALOGUE = os.path.join(ground.ROOT, "Sources", "Godwit", "Godwit.docc")
PAGES = ("README.md", "FirstMigration.md", "MappingTutorial.md", "PolicyTutorial.md", "FleetTutorial.md",
         "DamagedStoreTutorial.md", "CoreDataExamples.md")
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)


def path_of(page):
    return os.path.join(ground.ROOT if page == "README.md" else CATALOGUE, page)


def commands(page):
    """The blocks of a page, in order."""
    with open(path_of(page), encoding="utf-8") as file:
        return BLOCK.findall(file.read())


def script(blocks, is_built):
    """The blocks as one script, which prints a command before it runs it."""
    if is_built:
        blocks = [re.sub(r"(?m)^swift build .*$", "", block) for block in blocks]
    text = "\n".join(blocks).replace("$PWD/.build/release", os.path.dirname(ground.godwit()))
    return f"set -euo pipefail\nset -v\n{text}"


def run(page, folder, timeout, is_built):
    """([problem], seconds, what was printed)"""
    blocks = commands(page)
    if not blocks:
        return [f"{page} has no commands"], 0.0, ""
    inner = os.path.join(folder, page)
    os.makedirs(inner)
    began = time.monotonic()
    done = subprocess.run(["bash", "-c", script(blocks, is_built)], cwd=ground.ROOT, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
                          env=tool.environment(TMPDIR=inner, NO_COLOR="1"))
    text = done.stdout.decode(errors="replace")
    problems = [f"{page} ended with {done.returncode}:\n{text[-3000:]}"] if done.returncode else []
    problems += [f"{page}: {line}" for line in text.splitlines() if tool.CRASH.search(line)]
    return problems, time.monotonic() - began, text


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/journeys", description=__doc__.splitlines()[0])
    parser.add_argument("--pages", nargs="+", default=PAGES, help="some pages only")
    parser.add_argument("--print", action="store_true", help="what the commands print")
    parser.add_argument("--built", action="store_true", help="what `swift build` makes lies beside GODWIT already")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds for a page")
    options = parser.parse_args(arguments)
    rows, failed = [], 0
    with ground.workspace("journeys") as folder:
        for page in options.pages:
            problems, seconds, text = run(page, folder, options.timeout, options.built)
            failed += bool(problems)
            if options.print:
                print(text)
            for problem in problems:
                print(problem)
            lines = sum(len(block.splitlines()) for block in commands(page))
            rows.append((page, lines, "FAILED" if problems else "works", f"{seconds:.1f}"))
    print(ground.table(rows, ("page", "lines of commands", "pasted in order", "seconds")))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
