#!/usr/bin/env python3
"""Compares two evaluators on a file of JSON Lines.

    {"graph": [[entity, key, {property: value}], …]}            the objects of the lines behind it
    {"expression": text, "source": [entity, key], "result": value | "error": kind}

A value is [kind, …]: ["n"], ["b", true], ["i", "7"], ["r", "0.5"], ["d", "1.5"] decimal,
["s", text], ["t", "seconds"] date, ["x", hex] data, ["u", text] UUID, ["l", text] URI,
["o", entity, key], ["a", […]] array, ["S", […]] set, ["O", […]] ordered set.

Exits with 0 when every result is the same, kinds of numbers included.
"""

import decimal
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.setrecursionlimit(100_000)

from evaluate import Evaluator  # noqa: E402
from values import (Array, Collection, Data, Date, Object, OrderedSet, Problem, Real, Set, Text,  # noqa: E402
                    Url, Uuid)


def decode(value):
    kind, rest = value[0], value[1:]
    if kind == "n":
        return None
    body = rest[0]
    plain = {"b": bool, "i": int, "r": lambda x: Real(float(x)), "d": decimal.Decimal, "s": Text,
             "t": lambda x: Date(float(x)), "x": lambda x: Data(bytes.fromhex(x)), "u": Uuid,
             "l": Url}
    if kind in plain:
        return plain[kind](body)
    if kind == "o":
        return Object(rest[0], rest[1])
    return {"a": Array, "S": Set, "O": OrderedSet}[kind](decode(member) for member in body)


def identical(a, b):
    """Equal in value and in kind."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Collection):
        return len(a.members) == len(b.members) and all(map(identical, a.members, b.members))
    return a == b


def main(path):
    evaluator, count, failures, errors = None, 0, 0, 0
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            entry = json.loads(line)
            if "graph" in entry:
                evaluator = Evaluator({
                    (entity, key): {name: decode(value) for name, value in row.items()}
                    for entity, key, row in entry["graph"]})
                continue
            count += 1
            errors += "error" in entry
            try:
                found = evaluator.run(entry["expression"], Object(*entry["source"]))
                agrees = "result" in entry and identical(found, decode(entry["result"]))
            except Problem as problem:
                found = f"error {problem}"
                agrees = entry.get("error") == str(problem)
            if not agrees:
                failures += 1
                if failures <= 20:
                    print(f"line {number}: {entry['expression']}\n  here: {found!r}\n  there: "
                          f"{entry.get('result', entry.get('error'))!r}")
    print(f"{count - failures} of {count} expressions agree ({errors} are errors in both)"
          if not failures else f"{count - failures} of {count} expressions agree")
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
