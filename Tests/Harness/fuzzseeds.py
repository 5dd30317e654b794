"""Inputs for the fuzzer to begin with: `python3 -m Harness.fuzzseeds FOLDER`.

Real files are read in place where the shared data is beside the package; without it, what `Fixtures` and
`Pipelines` hold, and random models.
"""
import glob
import hashlib
import json
import os
import random
import sqlite3
import sys
import tempfile

from . import ground, modelchanges, modelxml

LARGEST = 128 << 10
WORDS = {
    "expression": ["$source", "$destination", "$manager", "$entityPolicy", "FUNCTION(", "FETCH(", "SUBQUERY(", "CAST(", "TERNARY(",
                   "valueForKey:", "BEGINSWITH[cd] ", " MATCHES ", " BETWEEN ", " IN ", " ANY ", " AND ", " OR ", "NOT ", "TRUEPREDICATE",
                   "@sum", "@count", "nil", "NULL", "\\u0041", "0x1F", "1e308", "godwit.bucket(", "{", "}", ".#size", ":=", "**", "!=", "<="],
    "model-xml": ["<entity name=\"A\"", "<attribute name=\"a\"", "<relationship name=\"r\"", "parentEntity=\"A\"", "attributeType=\"Composite\"",
                  "elements=\"C\"", "<composite name=\"C\">", "toMany=\"YES\"", "inverseName=\"r\"", "destinationEntity=\"A\"", "derived=\"YES\"",
                  "derivationExpression=\"r.@count\"", "<fetchIndex", "<uniquenessConstraints>", "&#x10FFFF;", "<![CDATA[", "<!--", "<!DOCTYPE"],
    "mapping-text": ["mapping-model: 1\n", "entity-mappings:\n", "source: ", "destination: ", "attributes:\n", "relationships:\n", "filter: ",
                     "policy: ", "&a ", "*a", "<<: ", "!!binary ", "? ", "|\n", "- "],
    "pipeline": ["stores:\n", "roots: [", "include: ", "exclude: ", "models: ", "destination: ", "mappings: ", "commit: { beside: ",
                 "shard: { bytes: ", "workers: ", "&a ", "*a", "<<: ", "!!int ", "? "],
    "property-list": ["bplist00", "<plist>", "<dict>", "<key>", "<array>", "<data>", "<integer>", "<real>", "<date>", "<true/>"],
}
JOURNAL = {"formatVersion": 1, "step": "prepared", "store": "/nowhere/a.sqlite", "run": "0", "added": [], "removed": []}


def found(*patterns):
    for pattern in patterns:
        yield from sorted(glob.glob(pattern, recursive=True))


def files(target):
    """The bytes of real files for a target."""
    at = lambda *parts: os.path.join(*parts)
    root, shared = ground.ROOT, ground.SHARED
    patterns = {
        "property-list": [at(root, "Fixtures/**/.xccurrentversion"), at(shared, "corpus-models/**/*.mom"), at(shared, "corpus-models/**/*.plist")],
        "keyed-archive": [at(shared, "corpus-models/**/*.mom"), at(shared, "corpus-mappings/**/*.cdm")],
        "model-archive": [at(shared, "corpus-models/**/*.mom")],
        "model-xml": [at(root, "Fixtures/**/contents"), at(root, "Pipelines/**/contents"), at(shared, "corpus-models/**/contents")],
        "mapping-text": [at(root, "Fixtures/*.yaml"), at(root, "Pipelines/**/*.mapping.yaml")],
        "mapping-xml": [at(shared, "corpus-mappings/**/xcmapping.xml")],
        "mapping-archive": [at(shared, "corpus-mappings/**/*.cdm")],
        "pipeline": [at(root, "Pipelines/*/pipeline.yaml")],
        "checkpoint": [at(root, "Tests/CheckpointsTests/Golden/*.ckpt")],
    }
    for path in found(*patterns.get(target, [])):
        if os.path.isfile(path) and os.path.getsize(path) <= LARGEST:
            with open(path, "rb") as file:
                yield file.read()


def rows(query):
    """The blobs that real stores give for a query."""
    for path in found(os.path.join(ground.CORPUS, "**", "*.sqlite")):
        try:
            connection = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
            yield from (bytes(blob) for (blob,) in connection.execute(query) if blob)
            connection.close()
        except sqlite3.Error:
            continue


def expressions():
    for path in found(os.path.join(ground.ROOT, "Pipelines", "**", "*.mapping.yaml"), os.path.join(ground.ROOT, "Fixtures", "*.yaml")):
        with open(path) as file:
            yield from (line.split(":", 1)[1].strip().strip("'\"").encode() for line in file if "$" in line and ":" in line)


def databases():
    """Small ones whose first table has its root at page 2, on one page and on several levels."""
    for rows, size, page in ((1, 9, 512), (60, 20, 512), (300, 12, 512), (6, 1500, 512), (40, 90, 1024)):
        connection = sqlite3.connect(":memory:")
        connection.execute(f"PRAGMA page_size = {page}")
        connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, a, b)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [(3 * n - 40, n << n % 50, "x" * (size - n % 3)) for n in range(rows)])
        connection.execute("DELETE FROM t WHERE k % 5 = 1")
        connection.commit()
        yield connection.serialize()
        connection.close()


def crowded():
    """Pages with as many cell pointers as have room, all of them to one cell."""
    for data in databases():
        page = int.from_bytes(data[16:18], "big")
        for place in range(page, min(len(data), 3 * page), page):
            cell = data[place + 8:place + 10]
            yield data[:place + 3] + b"\xff\xff" + data[place + 5:place + 8] + cell * ((page - 8 - 60) // 2) + data[place + page - 60:]


def logs():
    """(target, bytes) of transactions that are not over, or not checkpointed."""
    with tempfile.TemporaryDirectory() as folder:
        for mode, target, suffix in (("DELETE", "rollback-journal", "-journal"), ("WAL", "wal", "-wal")):
            for page, rows in ((512, 4), (512, 60), (1024, 12)):
                path = os.path.join(folder, f"{mode}-{page}-{rows}.sqlite")
                connection = sqlite3.connect(path, isolation_level=None)
                for text in (f"PRAGMA page_size = {page}", f"PRAGMA journal_mode = {mode}", "PRAGMA cache_size = 1",
                             "CREATE TABLE t (a)", "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 60) "
                             "INSERT INTO t SELECT hex(randomblob(60)) FROM n", "BEGIN", f"UPDATE t SET a = 'x' WHERE rowid <= {rows}"):
                    connection.execute(text)
                if mode == "WAL":
                    connection.execute("COMMIT")
                with open(path + suffix, "rb") as file:
                    yield target, file.read()
                connection.close()


def seeds():
    """(target, bytes)."""
    for target in ("property-list", "keyed-archive", "model-archive", "model-xml", "mapping-text", "mapping-xml", "mapping-archive",
                   "pipeline"):
        yield from ((target, data) for data in files(target))
    yield from (("property-list", blob) for blob in rows("SELECT Z_PLIST FROM Z_METADATA"))
    yield from (("model-archive", blob) for blob in rows("SELECT Z_CONTENT FROM Z_MODELCACHE"))
    for seed in range(40):
        for model in modelchanges.chain(random.Random(seed), 2)[0]:
            yield "model-xml", modelxml.contents(model).encode()
    yield from (("expression", text) for text in expressions())
    # The golden checkpoint as it is, its frame under a header put right, and entries.
    for data in files("checkpoint"):
        yield from (("checkpoint", bytes([mode]) + data) for mode in (0, 1))
    summary = b'{"rows":1,"digests":[],"findings":[],"bytes":9}'
    entries = b"\x03\x00\x00\x00\x00" + b"\x01" + b"\x00" * 7 + b"\x02\x01\x07" + bytes([len(summary)]) + b"\x00\x00\x00\x01" + b"\x00" * 8 + summary
    yield "checkpoint", b"\x02" + b"\x00" * 10 + b"\x01" + b"\x00" * 37 + b"\x02" + b"\x00" * 47 + entries
    yield "journal", json.dumps(JOURNAL).encode()
    yield from logs()
    for record in (b"\x02\x01\x07", b"\x05\x00\x01\x06\x0f\x13ab", b"\x04\x07\x17\x1c" + b"\x40" * 24):
        yield "record", record
    yield from ((target, data) for data in databases() for target in ("pages", "damaged-pages"))
    yield from (("damaged-pages", data) for data in crowded())


def main(folder):
    written = 0
    for target, data in seeds():
        if len(data) <= LARGEST:
            os.makedirs(os.path.join(folder, target), exist_ok=True)
            with open(os.path.join(folder, target, hashlib.sha256(data).hexdigest()[:16]), "wb") as file:
                file.write(data)
            written += 1
    for target, words in WORDS.items():
        with open(os.path.join(folder, target + ".dict"), "w") as file:
            for word in words:
                text = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\x0a")
                file.write(f'"{text}"\n')
    ground.say(f"{written} inputs to begin with")


if __name__ == "__main__":
    main(sys.argv[1])
