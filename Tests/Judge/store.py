"""Stores by Core Data's documented layout, read through SQLite; the files are not touched."""
import hashlib
import os
import plistlib
import shutil
import sqlite3
import tempfile

from .model import COLUMN, GROUP, Relationship, Unjudged

FILES = ("", "-wal", "-journal")
MOST_IN_MEMORY = 64 << 20


class StoreError(Exception):
    """The file is not a store that can be read."""


def quote(name):
    return '"' + name.replace('"', '""') + '"'


def support_folder(path):
    stem = os.path.splitext(os.path.basename(path))[0]
    return os.path.join(os.path.dirname(os.path.abspath(path)), f".{stem}_SUPPORT")


class Store:
    """A private copy of a store, opened; `hashes` are the version hashes that it records."""

    def __init__(self, path):
        self.path = path
        # In memory, where the machine has such a folder: the copy is for this process alone.
        size = sum(os.path.getsize(path + suffix) for suffix in FILES if os.path.exists(path + suffix))
        memory = "/dev/shm" if size < MOST_IN_MEMORY and os.access("/dev/shm", os.W_OK) else None
        self.folder = tempfile.mkdtemp(prefix="judge-", dir=memory)
        try:
            copy = os.path.join(self.folder, "store.sqlite")
            for suffix in FILES:
                if os.path.exists(path + suffix):
                    shutil.copyfile(path + suffix, copy + suffix)
            self.db = sqlite3.connect(copy)
            self.db.text_factory = lambda b: b.decode("utf-8", "surrogateescape")
            row = self.db.execute("SELECT Z_UUID, Z_PLIST FROM Z_METADATA").fetchone()
            self.uuid, self.metadata = row[0], plistlib.loads(row[1])
            self.hashes = self.metadata["NSStoreModelVersionHashes"]
            # Numbers from 16000 on are history's, whose entities may have names of the model's.
            self.numbers = {name: number for number, name in
                            self.db.execute("SELECT Z_ENT, Z_NAME FROM Z_PRIMARYKEY WHERE Z_ENT < 16000")}
        except Exception as error:
            self.close()
            raise StoreError(f"{path}: {error!r}") from error

    def close(self):
        if hasattr(self, "db"):
            self.db.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def tables(self):
        return {name for (name,) in self.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def columns(self, table):
        """{column: declared type}"""
        return {row[1]: row[2] for row in self.db.execute(f"PRAGMA table_info({quote(table)})")}


class Layout:
    """Where a model's entities and properties lie in a store."""

    def __init__(self, model, numbers):
        self.model, self.numbers = model, numbers
        unknown = set(model.entities) - set(numbers)
        if unknown:
            raise StoreError(f"Z_PRIMARYKEY lacks {', '.join(sorted(unknown))}")
        self.order = sorted(model.entities, key=numbers.__getitem__)
        self.column = {}        # (declaring entity, property): column
        self.expected = {}      # table: {column: declared type}
        for name in self.order:
            if model.root(name) == name:
                self._name_columns(name)
        self.pairs = {}         # (declaring entity, relationship): (table, own key, other key, order)
        for name in self.order:
            self._name_pairs(name)

    def table(self, entity):
        return "Z" + self.model.root(entity).upper()

    def _name_columns(self, root):
        taken, table = {"Z_PK", "Z_ENT", "Z_OPT"}, self.expected.setdefault(self.table(root), {})

        def free(wanted):
            number, name = 0, wanted
            while name in taken:
                number += 1
                name = f"{wanted}{number}"
            taken.add(name)
            return name
        for name in self.order:
            if self.model.root(name) != root:
                continue
            own = sorted(self.model.entities[name].properties.values(), key=lambda p: p.name.encode())
            ones = [p for p in own if isinstance(p, Relationship) and not p.many]
            plain = [p for p in own if not isinstance(p, Relationship)]
            for prop in sorted(plain, key=lambda p: (GROUP[p.type] != 1, )):
                if GROUP[prop.type] == 1:
                    table[self._give(name, prop, free)] = COLUMN[prop.type]
            for prop in ones:
                column = self._give(name, prop, free)
                table[column] = "INTEGER"
                if len(self.model.below(prop.destination)) > 1:
                    number = self.numbers[self.model.root(prop.destination)]
                    table[f"Z{number}_{column[1:]}"] = "INTEGER"
            for group in range(3, 10):
                for prop in plain:
                    if GROUP[prop.type] == group:
                        table[self._give(name, prop, free)] = COLUMN[prop.type]

    def _give(self, entity, prop, free):
        column = free("Z" + prop.name.upper())
        self.column[entity, prop.name] = column
        return column

    def _name_pairs(self, name):
        for prop in self.model.entities[name].properties.values():
            if not isinstance(prop, Relationship) or not prop.many:
                continue
            found = self.model.inverse(prop)
            if found is None:
                column = f"Z{self.numbers[name]}{prop.name.upper()}"
                self.pairs[name, prop.name] = (self.table(prop.destination), column, "Z_PK", None)
                continue
            owner, inverse = found
            if not inverse.many:
                column = self.column[owner, inverse.name]
                order = f"Z_FOK_{column[1:]}" if prop.ordered else None
                self.pairs[name, prop.name] = (self.table(owner), column, "Z_PK", order)
            else:
                self._name_join(name, prop, owner, inverse)

    def _key_column(self, name, relationship):
        """The column of a join table that holds an entity's keys: named after the inverse, unique in the entity."""
        joins = [p for p in self.model.entities[name].properties.values()
                 if isinstance(p, Relationship) and p.many and (found := self.model.inverse(p)) and found[1].many]
        taken = set()
        for prop in sorted(joins, key=lambda p: p.name.encode()):
            wanted, number = f"Z_{self.numbers[name]}{self.model.inverse(prop)[1].name.upper()}", 0
            column = wanted
            while column in taken:
                number += 1
                column = f"{wanted}{number}"
            taken.add(column)
            if prop.name == relationship.name:
                return column
        raise Unjudged(f"{name}.{relationship.name} has no key column")

    def _name_join(self, name, prop, owner, inverse):
        a, b = (self.numbers[name], prop), (self.numbers[owner], inverse)
        if prop is inverse:
            table = f"Z_{a[0]}{prop.name.upper()}"
            self.pairs[name, prop.name] = (table, table, "REFLEXIVE", None)
            return
        # The table is named after the lower number; in one entity after the later name.
        first = a[0] < b[0] or (a[0] == b[0] and prop.name.encode() > inverse.name.encode())
        low = a if first else b
        table = f"Z_{low[0]}{low[1].name.upper()}"
        own, other = self._key_column(name, prop), self._key_column(owner, inverse)
        order = f"Z_FOK_{other[2:]}" if prop.ordered else None
        self.pairs[name, prop.name] = (table, own, other, order)

    def check(self, store):
        """What of the layout the store lacks: [text]."""
        tables, found = store.tables(), []
        for table, wanted in self.expected.items():
            if table not in tables:
                found.append(f"no table {table}")
                continue
            there = store.columns(table)
            found += [f"{table}.{c} is {there.get(c)}, expected {t}" for c, t in wanted.items() if there.get(c) != t]
        for (entity, prop), (table, own, other, order) in self.pairs.items():
            if table not in tables:
                raise Unjudged(f"the join table of {entity}.{prop} has a name that this judge does not know")
            if not {own, other, order} - {None} <= set(store.columns(table)):
                raise Unjudged(f"the columns of {entity}.{prop} have names that this judge does not know")
        return found


def digest(path):
    """One text for what a store holds: schema, rows and external data, whatever the order on the disk."""
    result = hashlib.sha256()
    with Store(path) as store:
        for sql in sorted(s for (s,) in store.db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")):
            result.update(sql.encode() + b"\0")
        referenced = set()
        for table in sorted(store.tables() - {"sqlite_sequence"}):
            result.update(table.encode() + b"\1")
            rows = []
            for row in store.db.execute(f"SELECT * FROM {quote(table)}"):
                rows.append(repr(row))
                referenced |= {name for name in map(external_name, row) if name}
            for text in sorted(rows):
                result.update(text.encode("utf-8", "surrogateescape") + b"\0")
    files = external_files(path)
    for name in sorted(referenced):
        result.update(name.encode() + files.get(name, b"missing"))
    return result.hexdigest()


def external_name(value):
    """The file that a value of an attribute with external storage names, or None."""
    if isinstance(value, bytes) and len(value) == 38 and value[:1] == b"\2" and value[-1:] == b"\0":
        return value[1:37].decode("ascii", "replace")
    return None


def external_files(path):
    """{name: digest} of a store's external data."""
    folder = os.path.join(support_folder(path), "_EXTERNAL_DATA")
    found = {}
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        with open(os.path.join(folder, name), "rb") as file:
            found[name] = hashlib.sha256(file.read()).digest()
    return found


def state(path):
    """Everything about a store's files that a reader must leave as it is."""
    found = {}
    for suffix in (*FILES, "-shm"):
        if os.path.exists(path + suffix):
            found[os.path.basename(path) + suffix] = _facts(path + suffix)
    for base, _, names in os.walk(support_folder(path)):
        for name in names:
            inner = os.path.join(base, name)
            found[os.path.relpath(inner, os.path.dirname(os.path.abspath(path)))] = _facts(inner)
    return found


def _facts(path):
    info = os.lstat(path)
    with open(path, "rb") as file:
        content = hashlib.sha256(file.read()).hexdigest()
    return {"content": content, "mode": info.st_mode, "mtime": info.st_mtime_ns, "inode": info.st_ino}
