"""The mapped migration of the trials: how its stores are made, and what its mapping model must
come to, recomputed from the source in SQL and Python."""
import os
import sqlite3
import subprocess
import sys

from . import ground, judge, tool

if judge.ground.load_oracle():
    from oraclelib import logical
    from oraclelib.store import Store, quote

MODELS = os.path.join(ground.ROOT, "Fixtures", "Ledger.xcdatamodeld")
MAPPING = os.path.join(ground.ROOT, "Fixtures", "Ledger.yaml")
POLICIES = os.path.join(ground.ROOT, "Fixtures", "Ledger.policies.yaml")
SOURCE = os.path.join(MODELS, "Ledger.xcdatamodel")
NAME = "Ledger 2"
DESTINATION = os.path.join(MODELS, NAME + ".xcdatamodel")
# Percent of the objects.
SHARES = {"Account": 30, "Entry": 45, "Label": 10, "Sheet": 15}


def add_options(parser):
    """`mapped` becomes the path of a mapping model, or None for an inferred mapping."""
    parser.add_argument("--mapped", action="store_const", const=MAPPING, help="migrate by a mapping model")
    parser.add_argument("--policies", dest="mapped", action="store_const", const=POLICIES,
                        help="migrate by a mapping model with entity migration policies")


def prepare(mapping):
    if mapping == POLICIES:
        ground.use_policies()


def make_store(folder, rows, seed, wal=False):
    """A seeded store of about `rows` objects; gives its path."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "Ledger.sqlite")
    command = [ground.fixtures(), "make-store", "--model", SOURCE, "--output", path, "--rows", "0",
               "--seed", str(seed)] + (["--wal"] if wal else [])
    for entity, share in SHARES.items():
        command += ["--entity-rows", f"{entity}={max(2, rows * share // 100)}"]
    made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if made.returncode:
        sys.exit(f"make-store failed: {made.stderr.decode(errors='replace').strip()}")
    return path


# Each gives the number of objects that are not what the mapping model says.
CLAIMS = {
    "accounts": """
        SELECT count(*) FROM s.ZACCOUNT o LEFT JOIN ZACCOUNT n USING (Z_PK)
         WHERE n.ZCENTS IS NOT CAST(o.ZBALANCE * 100 AS INTEGER) OR n.ZDAY IS NOT o.ZOPENED / 86400.0
            OR n.ZOPENED IS NOT o.ZOPENED OR n.ZREFERENCE IS NOT o.ZREFERENCE
            OR n.ZTIER IS NOT iif(o.ZLEVEL > 1, 'gold', 'plain') OR n.ZTITLE IS NOT upper_case(o.ZNAME)
            OR n.ZPROFILE IS NOT o.Z_PK""",
    "profiles": """
        SELECT count(*) FROM s.ZACCOUNT o LEFT JOIN ZPROFILE n USING (Z_PK)
         WHERE n.ZCONTACT IS NOT o.ZCONTACT OR n.ZLETTERS IS NOT units(o.ZNAME)
            OR n.ZACCOUNT IS NOT o.Z_PK""",
    "debits": """
        SELECT count(*) FROM became b JOIN s.ZENTRY o ON o.Z_PK = b.entry LEFT JOIN ZMOVEMENT n ON n.Z_PK = b.movement
         WHERE b.debit AND (n.ZCENTS IS NOT CAST(o.ZAMOUNT * -100 AS INTEGER) OR n.ZMEMO IS NOT o.ZMEMO
               OR n.ZFEE IS NOT 0.25 * o.ZKIND OR n.ZORIGIN IS NOT NULL)""",
    "credits": """
        SELECT count(*) FROM became b JOIN s.ZENTRY o ON o.Z_PK = b.entry LEFT JOIN ZMOVEMENT n ON n.Z_PK = b.movement
         WHERE NOT b.debit AND (n.ZCENTS IS NOT CAST(o.ZAMOUNT * 100 AS INTEGER)
               OR n.ZMEMO IS NOT lower_case(o.ZMEMO) OR n.ZORIGIN IS NOT o.ZKIND + 100 OR n.ZFEE IS NOT NULL)""",
    "movements' entity, date and owners": """
        SELECT count(*) FROM became b JOIN s.ZENTRY o ON o.Z_PK = b.entry LEFT JOIN ZMOVEMENT n ON n.Z_PK = b.movement
         WHERE n.ZPOSTED IS NOT o.ZPOSTED OR n.ZACCOUNT IS NOT o.ZACCOUNT OR n.ZSHEET IS NOT o.ZSHEET
            OR n.Z_ENT IS NOT (SELECT Z_ENT FROM Z_PRIMARYKEY WHERE Z_NAME = iif(b.debit, 'Debit', 'Credit'))""",
    "labels": """
        SELECT count(*) FROM s.ZLABEL o LEFT JOIN ZLABEL n USING (Z_PK)
         WHERE iif(o.ZCOLOR = 3, n.Z_PK IS NOT NULL, n.ZCOLOR IS NOT o.ZCOLOR * 10 OR n.ZTEXT IS NOT o.ZTEXT)""",
    "sheets": """
        SELECT count(*) FROM s.ZSHEET o LEFT JOIN ZSHEET n USING (Z_PK)
         WHERE n.ZHEADING IS NOT o.ZTITLE OR n.ZISSUED IS NOT o.ZISSUED OR n.ZNUMBER IS NOT o.ZNUMBER * 10 + 1""",
    "order of movements in sheets": """
        SELECT count(*) FROM
          (SELECT b.movement, row_number() OVER (PARTITION BY o.ZSHEET ORDER BY o.Z_FOK_SHEET) AS place
             FROM became b JOIN s.ZENTRY o ON o.Z_PK = b.entry WHERE o.ZSHEET IS NOT NULL) x
          LEFT JOIN (SELECT Z_PK, row_number() OVER (PARTITION BY ZSHEET ORDER BY Z_FOK_SHEET) AS place
                       FROM ZMOVEMENT WHERE ZSHEET IS NOT NULL) n ON n.Z_PK = x.movement
         WHERE n.place IS NOT x.place""",
    "objects nobody made": """
        SELECT (SELECT count(*) FROM ZACCOUNT) - (SELECT count(*) FROM s.ZACCOUNT)
             + (SELECT count(*) FROM ZPROFILE) - (SELECT count(*) FROM s.ZACCOUNT)
             + (SELECT count(*) FROM ZMOVEMENT) - (SELECT count(*) FROM became)
             + (SELECT count(*) FROM ZLABEL) - (SELECT count(*) FROM s.ZLABEL WHERE ZCOLOR <> 3)
             + (SELECT count(*) FROM ZSHEET) - (SELECT count(*) FROM s.ZSHEET)""",
}

# Debits come first, and each in the order of its source objects: keys follow from that.
BECAME = """
    CREATE TEMP TABLE became AS
    SELECT Z_PK AS entry, ZAMOUNT < 0 AS debit, row_number() OVER (ORDER BY ZAMOUNT >= 0, Z_PK) AS movement
      FROM s.ZENTRY WHERE ZAMOUNT < 0 OR ZKIND <> 9"""


def wrong(source, destination):
    """What of a destination is not what the mapping model says: [text]. A log beside the source is
    read as well, which changes the files: give a copy."""
    database = sqlite3.connect(f"file:{destination}?mode=ro", uri=True)
    database.create_function("upper_case", 1, lambda t: t and t.upper(), deterministic=True)
    database.create_function("lower_case", 1, lambda t: t and t.lower(), deterministic=True)
    database.create_function("units", 1, lambda t: t if t is None else len(t.encode("utf-16-le")) // 2, deterministic=True)
    database.execute("ATTACH ? AS s", (source,))
    database.execute(BECAME)
    database.execute("CREATE UNIQUE INDEX temp.by_entry ON became (entry)")
    found = [(name, database.execute(sql).fetchone()[0]) for name, sql in CLAIMS.items()]
    gone = {k for k, in database.execute("SELECT Z_PK FROM s.ZLABEL WHERE ZCOLOR = 3")}
    database.close()
    with Store(source) as a, Store(destination) as b:
        old, new = (_lists(logical.Logical(s, judge.model(m))) for s, m in ((a, SOURCE), (b, DESTINATION)))
    for name in ("Account.labels", "Sheet.labels"):
        expected = {k: kept for k, v in old[name].items() if (kept := [t for t in v if t not in gone])}
        found.append((name, sum(expected.get(k) != new[name].get(k) for k in set(expected) | set(new[name]))))
    return [f"{name}: {number} wrong" for name, number in found if number]


def _lists(side):
    """{Entity.relationship: {owner: [member]}} of the many-to-many relationships of the trials."""
    found = {}
    for owner, prop, (column, members), target, fok in side.relations():
        if (owner, prop.name) not in (("Account", "labels"), ("Sheet", "labels")):
            continue
        lists = found.setdefault(f"{owner}.{prop.name}", {})
        order = f"{quote(fok)}, " if prop.ordered and fok else ""
        for key, member in side.store.db.execute(
                f"SELECT {column}, {target} FROM {members} ORDER BY {column}, {order}{target}"):
            lists.setdefault(key, []).append(member)
    return found


def unlike_expressions(source, destination):
    """What the policies did must be what the expressions do when they, too, give new keys."""
    expected = destination + ".expressions"
    run = tool.run(tool.migrate_command(source, [MODELS], NAME, expected, extra=["--mapping", MAPPING, "--renumber"]))
    if run.exit:
        return [f"the migration by expressions: {run.why()}"]
    digests = [judge.digest(path) for path in (destination, expected)]
    os.remove(expected)
    return [] if digests[0] == digests[1] else ["the objects are not those of the migration by expressions"]


def problems(source, destination, mapping=MAPPING):
    """Everything that is to be said against a destination of the trials."""
    found = (wrong if mapping == MAPPING else unlike_expressions)(source, destination)
    kind, ordered, differs = judge.schema(destination, DESTINATION)
    if kind != "exact" or not ordered:
        found.append(f"ddl {kind}: {differs[:2]}")
    by_class = judge.findings(destination, DESTINATION)
    bad = judge.unsound(by_class) + [k for k in (judge.VALIDATION,) if by_class.get(k)]
    return found + [f"check: {k} {by_class.get(k)}" for k in bad]
