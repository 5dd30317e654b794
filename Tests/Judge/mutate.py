"""Damage of every kind, by seed: run(STORE, OUTPUT, SEED, KIND) writes a damaged copy of a store.

What is damaged depends on the seed and the store alone. Each kind says what it did.
"""
import os
import random
import shutil
import sqlite3
import zlib

from .store import FILES, quote, support_folder


def _database(path):
    """The store without its log, for changes through SQLite."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = DELETE")
    database.execute("PRAGMA synchronous = OFF")
    return database


def _entity_tables(database):
    return sorted(name for (name,) in database.execute(
        "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c ON c.name = 'Z_ENT' "
        "WHERE m.type = 'table' AND m.name <> 'Z_PRIMARYKEY'")
        if database.execute(f"SELECT 1 FROM {quote(name)} LIMIT 1").fetchone())


def _row(database, rng):
    """(table, a key in it, its columns that are Core Data's properties)."""
    table = rng.choice(_entity_tables(database))
    keys = [k for (k,) in database.execute(f"SELECT Z_PK FROM {quote(table)}")]
    columns = [r[1] for r in database.execute(f"PRAGMA table_info({quote(table)})")
               if r[1] not in ("Z_PK", "Z_ENT", "Z_OPT")]
    return table, rng.choice(keys), columns


def _bytes(path, rng, first, count, change):
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        for _ in range(count):
            place = rng.randrange(first, size)
            file.seek(place)
            old = file.read(1)[0]
            file.seek(place)
            file.write(bytes([change(old)]))


def bits(path, rng):
    _bytes(path, rng, 100, 3, lambda b: b ^ (1 << rng.randrange(8)))
    return "three bits behind the header flipped"


def header(path, rng):
    place = rng.choice([0, 16, 18, 20, 28, 36, 44, 52, 56])
    with open(path, "r+b") as file:
        file.seek(place)
        file.write(bytes([rng.randrange(256) for _ in range(2)]))
    return f"two bytes of the header at {place}"


def truncated(path, rng):
    size = rng.randrange(1, os.path.getsize(path))
    os.truncate(path, size)
    return f"cut to {size} bytes"


def zeroed_page(path, rng):
    pages = os.path.getsize(path) // 4096
    page = rng.randrange(1, pages) if pages > 1 else 0
    with open(path, "r+b") as file:
        file.seek(page * 4096)
        file.write(bytes(4096))
    return f"page {page + 1} zeroed"


def swapped_pages(path, rng):
    pages = os.path.getsize(path) // 4096
    a, b = rng.sample(range(1, pages), 2)
    with open(path, "r+b") as file:
        contents = []
        for page in (a, b):
            file.seek(page * 4096)
            contents.append(file.read(4096))
        for page, content in zip((b, a), contents):
            file.seek(page * 4096)
            file.write(content)
    return f"pages {a + 1} and {b + 1} exchanged"


def noise(path, rng):
    with open(path, "wb") as file:
        file.write(rng.randbytes(rng.randrange(1, 50_000)))
    return "noise in place of the file"


def no_metadata(path, rng):
    _database(path).execute("DELETE FROM Z_METADATA")
    return "Z_METADATA emptied"


def torn_metadata(path, rng):
    database = _database(path)
    text = database.execute("SELECT Z_PLIST FROM Z_METADATA").fetchone()[0]
    database.execute("UPDATE Z_METADATA SET Z_PLIST = ?", (text[:rng.randrange(len(text))],))
    return "the property list of the metadata cut"


def torn_model_cache(path, rng):
    database = _database(path)
    text = database.execute("SELECT Z_CONTENT FROM Z_MODELCACHE").fetchone()[0]
    database.execute("UPDATE Z_MODELCACHE SET Z_CONTENT = ?", (text[:rng.randrange(len(text))],))
    return "the model cache cut"


def huge_model_cache(path, rng):
    _database(path).execute("UPDATE Z_MODELCACHE SET Z_CONTENT = ?", (zlib.compress(bytes(200 << 20)),))
    return "a model cache that unpacks to 200 MiB"


def stale_keys(path, rng):
    _database(path).execute("UPDATE Z_PRIMARYKEY SET Z_MAX = 0")
    return "the highest keys forgotten"


def wrong_entity_number(path, rng):
    database = _database(path)
    table, key, _ = _row(database, rng)
    database.execute(f"UPDATE {quote(table)} SET Z_ENT = 999 WHERE Z_PK = ?", (key,))
    return f"a row of {table} with an unknown entity number"


def wrong_storage(path, rng):
    database = _database(path)
    table, key, columns = _row(database, rng)
    column = rng.choice(columns)
    database.execute(f"UPDATE {quote(table)} SET {quote(column)} = ? WHERE Z_PK = ?", (rng.choice([b"x", "x y", 1e300]), key))
    return f"a value of another kind in {table}.{column}"


def cleared_value(path, rng):
    database = _database(path)
    table, key, columns = _row(database, rng)
    for column in columns:
        database.execute(f"UPDATE {quote(table)} SET {quote(column)} = NULL WHERE Z_PK = ?", (key,))
    return f"a row of {table} without values"


def dropped_table(path, rng):
    database = _database(path)
    table = rng.choice(_entity_tables(database))
    database.execute(f"DROP TABLE {quote(table)}")
    return f"{table} dropped"


def dropped_index(path, rng):
    database = _database(path)
    names = [n for (n,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY 1")]
    if not names:
        return "nothing to damage"
    name = rng.choice(names)
    database.execute(f"DROP INDEX {quote(name)}")
    return f"{name} dropped"


def lying_index(path, rng):
    """An index that lacks a row's key: the schema hides it while the row goes in."""
    database = _database(path)
    indexes = database.execute("SELECT name, tbl_name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL "
                               "ORDER BY 1").fetchall()
    if not indexes:
        return "nothing to damage"
    name, table, sql = rng.choice(indexes)
    database.execute("PRAGMA writable_schema = ON")
    database.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (sql + " WHERE 0", name))
    database.close()
    database = sqlite3.connect(path, isolation_level=None)
    row = database.execute(f"SELECT rowid FROM {quote(table)} ORDER BY rowid LIMIT 1").fetchone()
    if row:
        copy = database.execute(f"SELECT * FROM {quote(table)} WHERE rowid = ?", row).fetchone()
        columns = [r[1] for r in database.execute(f"PRAGMA table_info({quote(table)})")]
        if "Z_PK" in columns:
            values = dict(zip(columns, copy)) | {"Z_PK": 1_000_000}
            database.execute(f"INSERT OR IGNORE INTO {quote(table)} ({', '.join(map(quote, values))}) "
                             f"VALUES ({', '.join('?' * len(values))})", tuple(values.values()))
    database.execute("PRAGMA writable_schema = ON")
    database.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (sql, name))
    return f"{name} lacks a key of {table}"


def dangling(path, rng):
    database = _database(path)
    for table in _entity_tables(database):
        for _, column, *_ in database.execute(f"PRAGMA table_info({quote(table)})").fetchall():
            if column.startswith("Z_"):
                continue
            if database.execute("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?",
                                (f"{table}_{column}_INDEX",)).fetchone():
                database.execute(f"UPDATE {quote(table)} SET {quote(column)} = 987654 WHERE Z_PK = "
                                 f"(SELECT min(Z_PK) FROM {quote(table)})")
                return f"{table}.{column} leads nowhere"
    return "nothing to damage"


def noise_log(path, rng):
    with open(path + "-wal", "wb") as file:
        file.write(rng.randbytes(40_000))
    return "noise as the write-ahead log"


def hot_journal(path, rng):
    with open(path + "-journal", "wb") as file:
        file.write(bytes.fromhex("d9d505f920a163d7") + rng.randbytes(5_000))
    return "noise as a rollback journal"


def lost_external_data(path, rng):
    folder = os.path.join(support_folder(path), "_EXTERNAL_DATA")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    if not names:
        return "nothing to damage"
    os.remove(os.path.join(folder, rng.choice(names)))
    return "a file of external data removed"


KINDS = {f.__name__.replace("_", "-"): f for f in (
    bits, header, truncated, zeroed_page, swapped_pages, noise, no_metadata, torn_metadata, torn_model_cache,
    huge_model_cache, stale_keys, wrong_entity_number, wrong_storage, cleared_value, dropped_table, dropped_index,
    lying_index, dangling, noise_log, hot_journal, lost_external_data)}


def run(store, output, seed, kind):
    """Writes a damaged copy of a store; gives what was done to it."""
    for suffix in FILES:
        if os.path.exists(store + suffix):
            shutil.copyfile(store + suffix, output + suffix)
    if os.path.isdir(support_folder(store)):
        shutil.copytree(support_folder(store), support_folder(output))
    return KINDS[kind](output, random.Random(f"{kind} {seed}"))
