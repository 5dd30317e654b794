"""The public API of the library as text, from the symbol graphs that the compiler writes: `scripts/api`."""
import glob
import json
import os
import sys


def symbols(folder):
    """{identifier: symbol} of every graph in a folder, and {identifier: its container's}."""
    found, inside = {}, {}
    for path in glob.glob(os.path.join(folder, "*.symbols.json")):
        with open(path, encoding="utf-8") as file:
            graph = json.load(file)
        for symbol in graph["symbols"]:
            found[symbol["identifier"]["precise"]] = symbol
        for relation in graph["relationships"]:
            if relation["kind"] in ("memberOf", "requirementOf"):
                inside[relation["source"]] = relation["target"]
    return found, inside


def declaration(symbol):
    """The declaration on one line."""
    return " ".join("".join(part["spelling"] for part in symbol["declarationFragments"]).split())


def lines(folder):
    """A line for each declaration, its container before it, in the order of their names."""
    for symbol in symbols(folder)[0].values():
        yield ".".join(symbol["pathComponents"]) + "    " + declaration(symbol)


def undocumented(folder):
    """The names of declarations whose comment does not begin with what they are; those that a compiler derives have
    none to write."""
    for symbol in symbols(folder)[0].values():
        comment = [line["text"].strip() for line in symbol.get("docComment", {}).get("lines", [])]
        if "location" in symbol and next(filter(None, comment), "- ").startswith("- "):
            yield ".".join(symbol["pathComponents"])


def main():
    folder = sys.argv[1]
    for line in sorted(set(lines(folder))):
        print(line)
    missing = sorted(set(undocumented(folder)))
    print(f"api: {len(symbols(folder)[0])} declarations, {len(missing)} that no comment explains", *missing[:40],
          sep="\n  ", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
