"""SQLite's side of the benchmark: scripts that need functions, rows one by one, and comparisons.

Runs on its own, without the package, so that it starts about as fast as the sqlite3 shell.
"""
import re
import sqlite3
import sys

INSERT = re.compile(r"INSERT INTO (\S+)\s+(SELECT .*\sFROM source\..*)", re.DOTALL)


def connect(path):
    """What the expressions of the mapping model need and SQLite lacks."""
    database = sqlite3.connect(path, isolation_level=None)
    database.create_function("lower", 1, lambda text: text and text.lower(), deterministic=True)
    database.create_function("upper", 1, lambda text: text and text.upper(), deterministic=True)
    database.create_function("utf16_length", 1, lambda text: len(text.encode("utf-16-le")) // 2, deterministic=True)
    return database


def statements(text):
    """The statements of a script, in order."""
    found = ""
    for line in text.splitlines(keepends=True):
        found += line
        if sqlite3.complete_statement(found):
            yield found.strip()
            found = ""
    if found.strip():
        raise ValueError("the script ends inside a statement")


def apply(database, script):
    with open(script, encoding="utf-8") as text:
        database.executescript(text.read())


def copy_rows(database, script):
    """What the script does, each row read into Python and inserted by itself; indexes last."""
    with open(script, encoding="utf-8") as text:
        found = list(statements(text.read()))
    indexes = [s for s in found if s.startswith("CREATE INDEX")]
    reader = database.cursor()
    for statement in found:
        insert = INSERT.match(statement)
        if insert:
            rows = reader.execute(insert[2])
            places = ", ".join("?" * len(rows.description))
            writer = f"INSERT INTO {insert[1]} VALUES ({places})"
            for row in rows:
                database.execute(writer, row)
        elif statement == "COMMIT;":
            for index in indexes:
                database.execute(index)
            database.execute(statement)
        elif statement not in indexes:
            database.execute(statement)


def differences(first, second):
    """[what differs] between the rows and indexes of two stores. Columns go by name."""
    database = sqlite3.connect(":memory:")
    database.execute("ATTACH ? AS a", (f"file:{first}",))
    database.execute("ATTACH ? AS b", (f"file:{second}",))
    schemas = [_schema(database, name) for name in "ab"]
    if schemas[0] != schemas[1]:
        odd = sorted(set(schemas[0].items()) ^ set(schemas[1].items()))
        return [f"the schemas differ: {odd[:4]}"]
    found = []
    for (kind, table), (columns, keys) in schemas[0].items():
        # What these two hold follows from the models; their bytes may differ.
        if kind != "table" or table in ("Z_METADATA", "Z_MODELCACHE"):
            continue
        counts = [database.execute(f'SELECT count(*) FROM {name}."{table}"').fetchone()[0] for name in "ab"]
        joined = " AND ".join(f'x."{k}" = y."{k}"' for k in keys)
        equal = " AND ".join(f'x."{c}" IS y."{c}" AND typeof(x."{c}") = typeof(y."{c}")' for c in columns)
        same = database.execute(f'SELECT count(*) FROM a."{table}" AS x CROSS JOIN b."{table}" AS y ON {joined} '
                                f"WHERE {equal}").fetchone()[0]
        if counts != [same, same]:
            found.append(f"{table}: {counts[0]} and {counts[1]} rows, {same} of them equal")
    database.close()
    return found


def _schema(database, name):
    """(kind, name) → (columns, keys), in an order that does not depend on how columns were added."""
    found = {}
    for kind, entry, in database.execute(
            f"SELECT type, name FROM {name}.sqlite_schema WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'").fetchall():
        if kind == "table":
            columns = database.execute(f'PRAGMA {name}.table_info("{entry}")').fetchall()
            shape = tuple(sorted(c[1] for c in columns)), tuple(c[1] for c in sorted(columns, key=lambda c: c[5]) if c[5])
        else:
            columns = database.execute(f'PRAGMA {name}.index_xinfo("{entry}")').fetchall()
            shape = tuple((c[2], c[3]) for c in columns if c[5]), ()
        found[kind, entry] = shape
    return dict(sorted(found.items()))


if __name__ == "__main__":
    action, path, file = sys.argv[1:]
    {"apply": apply, "rows": copy_rows}[action](connect(path), file)
