"""The reference pages say what the code says: generated pages are fresh, words and examples agree."""
import json
import os
import plistlib
import re
import sqlite3
import subprocess
import sys
import unittest
import uuid

from . import ground, journeys, test_manual, tool

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ground.ROOT, "scripts", "packaging"))
import jsonfields  # noqa: E402
import manual  # noqa: E402
import reference  # noqa: E402

SOURCES = os.path.join(ground.ROOT, "Sources")
ATTRIBUTES = [("name", "String"), ("size", "String"), ("amount", "Double"), ("number", "Integer 64"), ("day", "Date"),
              ("bytes", "Binary"), ("metadata", "Binary"), ("identifier", "UUID"), ("address", "URI")]
VALUES = {"name": "Limosa", "size": "large", "amount": 2.5, "number": 7, "day": 0, "bytes": b"hi",
          "metadata": plistlib.dumps({"extendedName": "Bar-tailed godwit"}),
          "identifier": uuid.UUID("0E984725-C51C-4BF4-9960-E1C80E27ABA0").bytes,
          "address": "https://example.com/birds/limosa.txt?year=2001#wing"}
ROW = re.compile(r"^\| `(.+?)` \| (.*?) ?\|$", re.M)


def page(name):
    return read(os.path.join(journeys.CATALOGUE, name))


def swift():
    """Every Swift source as one text."""
    texts = []
    for base, _, names in os.walk(SOURCES):
        for name in names:
            if name.endswith(".swift"):
                with open(os.path.join(base, name), encoding="utf-8") as file:
                    texts.append(file.read())
    return "\n".join(texts)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def source(path):
    return read(os.path.join(SOURCES, path))


def tests():
    """Every test as one text, but for those that only list words."""
    text = ""
    for base, _, names in os.walk(os.path.join(ground.ROOT, "Tests")):
        for name in names:
            if name.endswith((".swift", ".py")) and name not in ("FailureAdviceTests.swift", "test_reference.py"):
                text += read(os.path.join(base, name))
    return text


def quoted_words(path, start, end):
    """The strings between two places of a source."""
    text = source(path)
    return re.findall(r'"([^"\\]+)"', text[text.index(start):text.index(end, text.index(start))])


def model(more=""):
    """The `contents` of the examples' model."""
    attributes = "".join(f'<attribute name="{n}" optional="YES" attributeType="{t}"/>' for n, t in ATTRIBUTES)
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0">
<entity name="Example">{attributes}{more}
<relationship name="tags" optional="YES" toMany="YES" destinationEntity="Tag" inverseName="example" inverseEntity="Tag"/></entity>
<entity name="Tag"><attribute name="label" optional="YES" attributeType="String"/>
<attribute name="weight" optional="YES" attributeType="Integer 64"/>
<relationship name="example" optional="YES" maxCount="1" destinationEntity="Example" inverseName="tags" inverseEntity="Example"/>
</entity></model>"""


KINDS = {"text": str, "number": (int, float), "true, false": bool, "list": list, "object": dict,
         "text or number": (str, int, float)}


def misfits(value, name, path, whole=False):
    """What of a JSON object is not as the page describes the type."""
    known = {field: (kind, optional) for field, kind, optional, _ in jsonfields.fields(name, path)}
    if whole:
        yield from (f"{name} lacks {f}" for f, (_, optional) in known.items() if not optional and f not in value)
    for field, inner in value.items():
        if field not in known:
            yield f"{name}.{field} is not described"
            continue
        swift, wanted = known[field][0], jsonfields.value_kind(known[field][0], name)
        if not isinstance(inner, KINDS[wanted]) or (isinstance(inner, bool) and wanted != "true, false"):
            yield f"{name}.{field} is no {wanted}: {inner!r}"
            continue
        part = jsonfields.part(swift, name)
        home = dict(jsonfields.parts()).get(part) or next((p for _, n, p, _ in jsonfields.LINES if n == part), None)
        items = inner if isinstance(inner, list) else inner.values() if swift.startswith("[") else [inner]
        for item in items if home else []:
            yield from misfits(item, part, home, whole) if isinstance(item, dict) else [f"{name}.{field} holds {item!r}"]


def line_misfits(line):
    """What of a line fits no type that the page has for its event: of the type that it fits best."""
    events = {word for word, _ in jsonfields.run_events()}
    found = [list(misfits(line, name, path, whole=True)) for event, name, path, _ in jsonfields.LINES
             if line.get("event") == event or (name == "RunEvent" and line.get("event") in events)]
    return min(found, key=len) if found else [f"no event {line.get('event')}"]


class Reference(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dump = subprocess.run([ground.godwit(), "--experimental-dump-help"], stdout=subprocess.PIPE, check=True).stdout
        cls.root = json.loads(cls.dump)["command"]

    def test_generated_pages_are_those_of_this_executable(self):
        for name, text in reference.pages(self.root).items():
            self.assertTrue(page(name) == text, f"{name} is old: run scripts/docs --reference")

    def test_every_option_has_an_example_and_every_example_only_options_that_there_are(self):
        shown, count = reference.examples()["commands"], 0
        for words, command in manual.pages(["godwit"], self.root):
            if manual.shown(command) or len(words) < 2:
                continue
            name, text = " ".join(words[1:]), "\n".join(shown[" ".join(words[1:])])
            typed = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", text)) - {"-print0", "-newer"}
            known = [set(manual.names(a)) for a in command["arguments"] if a.get("names")]
            for names in (n for n, a in zip(known, (a for a in command["arguments"] if a.get("names")))
                          if manual.is_shown(a)):
                self.assertTrue(names & typed, f"{name} has no example with {' or '.join(names)}")
                count += 1
            self.assertLessEqual(typed, set().union(*known), f"{name}: an example with an option that it has not")
        self.assertGreater(count, 100)

    def test_every_example_is_a_command_line_that_the_executable_takes(self):
        """Without models and stores each fails for what is not there, and none for its words (exit code 64)."""
        lines = [line for shown in reference.examples()["commands"].values() for line in shown]
        self.assertGreater(len(lines), 80)
        with ground.workspace("examples") as folder:
            path = os.path.dirname(ground.godwit()) + os.pathsep + os.environ["PATH"]
            for number, line in enumerate(lines):
                place = os.path.join(folder, str(number))
                os.makedirs(os.path.join(place, "Pipelines", "recipes-2.0"))
                with open(os.path.join(place, "Pipelines", "recipes-2.0", "pipeline.yaml"), "w", encoding="utf-8") as file:
                    file.write("stores: { roots: nowhere }\nmodels: nowhere.xcdatamodeld\nbackups: { keep: 14d }\n")
                run = subprocess.run(["bash", "-c", line], cwd=place, env=tool.environment(PATH=path, TMPDIR=folder),
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
                said = run.stdout.decode()
                # A run or a store that the ledger does not know is 64, too.
                self.assertFalse(run.returncode == 64 and "Usage:" in said, f"{line}: {said[-500:]}")

    def test_every_example_of_a_line_has_the_fields_that_are_described(self):
        shown = reference.examples()["lines"]
        for _, name, path, _ in jsonfields.LINES:
            self.assertEqual(list(misfits(shown[name], name, path)), [], name)

    def test_every_meaning_of_a_field_is_used(self):
        used = {"event"}
        for name, path in [(n, p) for _, n, p, _ in jsonfields.LINES] + jsonfields.parts():
            for field, _, _, comment in jsonfields.fields(name, path):
                used |= set() if comment else {field, f"{name}.{field}"}
        self.assertLessEqual(set(reference.examples()["fields"]), used)

    def test_every_key_has_an_example(self):
        examples = reference.examples()
        schema, mapping = reference.schema_of("pipeline"), reference.schema_of("mapping")
        for part, root, shown in ((schema, schema, "pipeline"), (mapping, mapping, "mapping"),
                                  (mapping["$defs"]["entity-mapping"], mapping, "mapping")):
            found = [".".join(path) for path, _ in reference.keys(part, root)]
            self.assertGreater(len(found), 3)
            for key in found:
                self.assertTrue(key in examples[shown], f"no example of the key {key}")

    def test_every_event_of_the_sources_is_described(self):
        described = {word for event, *_ in jsonfields.LINES for word in event.split(", ")}
        self.assertGreater(len(jsonfields.events()), 15)
        self.assertLessEqual(jsonfields.events(), described)
        text = page("JSONOutput.md")
        names = re.findall(r'case \w+ = "([\w-]+)"|case (\w+)$', source("Fleet/RunEvent.swift").split("var isOfUnit")[0], re.M)
        self.assertGreater(len(names), 5)
        for one, other in names:
            self.assertTrue(f"`{one or other}`" in text, one or other)

    def test_lines_of_the_commands_are_as_they_are_described(self):
        with ground.workspace("lines") as folder:
            printed, events = self.printed(folder), set()
        for words, lines in printed:
            self.assertGreater(len(lines), 0, words)
            for line in lines:
                events.add(line["event"])
                self.assertEqual(line_misfits(line), [], f"{words}: {line}")
        self.assertLessEqual({"result", "summary", "stage", "pipeline", "fleet-plan", "store", "status", "run", "attempt",
                              "report", "backup", "quarantine", "check", "version", "model", "diff", "finding"}, events)

    def printed(self, folder):
        """[(words, [line])] of a run of every command that needs no cluster."""
        models = os.path.join(ground.ROOT, "Fixtures", "Recipes.xcdatamodeld")
        pair = [models + ":Recipes", models + ":Recipes 2"]
        rows = ["--valid-for", pair[1], "--rows", "60", "--seed", "3", "--external", "0.2", "-o"]
        os.makedirs(os.path.join(folder, "pipeline", "stores"))
        with open(os.path.join(folder, "pipeline", "pipeline.yaml"), "w", encoding="utf-8") as file:
            file.write(f"stores: {{ roots: stores }}\nmodels: {models}\ndestination: Recipes 2\n")
        with open(os.path.join(folder, "pipeline", "stores", "bad.sqlite"), "w", encoding="utf-8") as file:
            file.write("no store")
        shown = []

        def run(*words):
            done = subprocess.run([ground.godwit(), *words, "--json"], cwd=folder, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=tool.environment(TMPDIR=folder))
            shown.append((words, [json.loads(line) for line in done.stdout.decode().splitlines()]))

        for name in ("pipeline/stores/a.sqlite", "one.sqlite"):
            run("fixture", pair[0], *rows, name)
        damaged = os.path.join(folder, "damaged.sqlite")
        subprocess.run(["cp", "one.sqlite", damaged], cwd=folder, check=True)
        database = sqlite3.connect(damaged)
        database.execute("UPDATE ZINGREDIENT SET ZRECIPE = 99999 WHERE Z_PK = 7")
        database.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = 3 WHERE Z_NAME = 'Recipe'")
        database.commit()
        database.close()
        for command in ("list", "show", "hash"):
            run("model", command, models)
        run("model", "diff", *pair)
        run("mapping", "infer", *pair)
        run("mapping", "new", *pair, "-o", "new.mapping.yaml")
        run("mapping", "check", "new.mapping.yaml", models + ":Recipes 2 M", pair[1])
        run("mapping", "convert", "new.mapping.yaml", "-o", "converted.yaml")
        run("inspect", "one.sqlite", damaged, "--models", models)
        run("plan", "one.sqlite", "--models", models)
        run("migrate", damaged, "--models", models, "--output", "refused.sqlite")
        run("repair", damaged, "-o", "repaired.sqlite", "--models", models)
        run("migrate", "one.sqlite", "--models", models, "--output", "two.sqlite", "--uri-table", "uris.tsv")
        run("verify", "two.sqlite", "--models", models)
        run("rehearse", models, "--stores", "pipeline/stores")
        for _ in range(3):
            run("run", "pipeline")
        run("plan", "pipeline")
        run("history", "pipeline", os.path.join(folder, "pipeline", "stores", "a.sqlite"))
        for command in ("status", "history", "report", "verify", "doctor"):
            run(command, "pipeline")
        run("quarantine", "list", "pipeline")
        run("quarantine", "release", "pipeline", "--all")
        run("backups", "list", "pipeline")
        run("rollback", "pipeline")
        run("backups", "prune", "pipeline")
        run("migrate", "nowhere.sqlite", "--models", models)
        run("control", "pipeline", "status")
        return shown

    def test_every_reason_of_the_sources_is_described(self):
        text, code = page("Outcomes.md"), swift()
        words = set(re.findall(r'Reason\(\s*reason: "([\w-]+)"', code))
        words |= set(re.findall(r'Judgement\(\s*\.\w+,\s*"([\w-]+)"', code))
        words |= set(re.findall(r'CommandError\(\s*\.\w+,\s*"([\w-]+)"', code))
        words |= set(re.findall(r'return refused\("([\w-]+)"', code)) | set(re.findall(r'return \("((?:store|other|backup)-\w+)"', code))
        for path, name in (("Mapping/Inference/Refusal.swift", "enum Reason"),
                           ("PersistentStore/Soundness/StoreFinding.swift", "enum Kind")):
            cases = source(path).split(name)[1].split("\n  }\n")[0]
            words |= {raw or swift_name for swift_name, raw in re.findall(r'case (\w+)(?: = "([\w-]+)")?$', cases, re.M)}
        losses = source("Planning/Losses/Loss.swift").split("enum Kind")[1].split("\n  }\n")[0]
        words |= {"lost-" + (raw or name) for name, raw in re.findall(r'case (\w+)(?: = "([\w-]+)")?$', losses, re.M)}
        self.assertGreater(len(words), 70)
        self.assertLessEqual({"no-run", "not-sound"}, words, "errors of the commands themselves")
        missing = sorted(w for w in words if f"`{w}`" not in text)
        self.assertEqual(missing, [], "reasons that Outcomes.md does not have")

    def test_every_reason_is_produced_by_a_test(self):
        """By its word in a string, or by the case of an enumeration that stands for it."""
        rows = re.findall(r"^\| (`[^|]+`) \|", page("Outcomes.md"), re.M)
        words = {word for row in rows for word in re.findall(r"`([\w-]+)`", row)}
        self.assertGreater(len(words), 90)
        text = tests()
        strings = "\n".join(re.findall(r'"(?:[^"\\\n]|\\.)*"', text))
        missing = []
        for word in sorted(words):
            # Results say `set-aside` where a refusal says `lost-set-aside`.
            short = word.removeprefix("lost-")
            first, *rest = short.split("-")
            member = first + "".join(part.capitalize() for part in rest)
            if not (re.search(rf"(?<![\w-])(?:lost-)?{short}(?![\w-])", strings) or re.search(rf"\.{member}\b", text)):
                missing.append(word)
        self.assertEqual(missing, [], "reasons that no test expects")

    def test_every_exit_code_is_expected_by_a_test(self):
        text = tests()
        for code, _ in manual.EXIT_CODES:
            self.assertTrue(re.search(rf"(?:status|exit)\w*\)? == {code}\b|status: {code}\b|exit: {code}\b|\(\.\w+, {code}\)", text), code)

    def test_every_key_of_a_pipeline_is_tried_by_a_test(self):
        with open(os.path.join(ground.ROOT, "Pipelines", "pipeline.schema.json"), encoding="utf-8") as file:
            found = list(test_manual.keys(json.load(file)))
        text = tests()
        for base, _, names in os.walk(os.path.join(ground.ROOT, "Pipelines")):
            text += "".join(read(os.path.join(base, name)) for name in names if name.endswith((".yaml", ".yml")))
        for key in found:
            self.assertTrue(re.search(rf"\b{re.escape(key[-1])}:", text), ".".join(key))

    def test_every_function_and_selector_is_described(self):
        text = page("Expressions.md")
        functions = quoted_words("Expressions/BuiltInFunction.swift", "static let all", "static let byName")
        selectors = quoted_words("Mapping/Check/ExpressionType.swift", "static let numbers", "\n}\n")
        self.assertGreater(len(functions), 50)
        self.assertGreater(len(selectors), 40)
        for word in set(functions + selectors) - {"+", "-", "*", "/", "**"}:
            shown = word if word.count(":") > 1 else word.rstrip(":")
            self.assertTrue(re.search(rf"(?<![\w.]){re.escape(shown)}[:(\"`.]|[.\"]{re.escape(shown)}:?[\"`.\[)]", text), word)
        operators = re.findall(r'case ((?:"\w+"(?:, )?)+):', source("Expressions/Evaluation/Evaluation+KeyPaths.swift").split("func collect")[1])
        for word in re.findall(r'"(\w+)"', " ".join(operators)):
            self.assertTrue(f"@{word}" in text, word)

    def test_every_example_of_an_expression_gives_what_the_page_says(self):
        rows = ROW.findall(page("Expressions.md").split("## Variables")[1].split("On the migration manager")[0])
        self.assertGreater(len(rows), 120)
        with ground.workspace("reference") as folder:
            results = self.evaluated(folder, [expression for expression, _ in rows])
        for (expression, wanted), found in zip(rows, results):
            with self.subTest(expression):
                self.assertEqual(found or "", wanted)

    def evaluated(self, folder, expressions):
        """What each expression gives as text, by a whole migration."""
        more = "".join(f'<attribute name="result{n}" optional="YES" attributeType="String"/>' for n in range(len(expressions)))
        for name, text in (("Old", model()), ("New", model(more))):
            os.makedirs(os.path.join(folder, name + ".xcdatamodel"))
            with open(os.path.join(folder, name + ".xcdatamodel", "contents"), "w", encoding="utf-8") as file:
                file.write(text)
        store, out = os.path.join(folder, "old.sqlite"), os.path.join(folder, "new.sqlite")
        old, new = (os.path.join(folder, n + ".xcdatamodel") for n in ("Old", "New"))
        subprocess.run([ground.godwit(), "fixture", old, "--entity-rows", "Example=1", "--entity-rows", "Tag=2", "--seed", "1",
                        "--nulls", "0", "-o", store], check=True, stdout=subprocess.DEVNULL)
        database = sqlite3.connect(store)
        database.execute("UPDATE ZEXAMPLE SET " + ", ".join(f"Z{n.upper()} = ?" for n in VALUES), tuple(VALUES.values()))
        example = database.execute("SELECT Z_PK FROM ZEXAMPLE").fetchone()[0]
        for key, (label, weight) in zip([k for (k,) in database.execute("SELECT Z_PK FROM ZTAG")], (("mud", 1), ("sea", 3))):
            database.execute("UPDATE ZTAG SET ZLABEL = ?, ZWEIGHT = ?, ZEXAMPLE = ? WHERE Z_PK = ?", (label, weight, example, key))
        database.commit()
        database.close()
        mapping = os.path.join(folder, "new.mapping.yaml")
        with open(mapping, "w", encoding="utf-8") as file:
            file.write("mapping-model: 1\nentity-mappings:\n  - { source: Tag, destination: Tag }\n"
                       "  - source: Example\n    destination: Example\n    attributes:\n")
            for number, expression in enumerate(expressions):
                text = "godwit.string(" + expression + ")"
                if "$propertyMapping" in expression:
                    text = f'FUNCTION({text}, "substringToIndex:", 6)'
                file.write(f"      result{number}: {json.dumps(text, ensure_ascii=False)}\n")
        checked = subprocess.run([ground.godwit(), "mapping", "check", mapping, old, new], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT)
        self.assertEqual(checked.returncode, 0, checked.stdout.decode())
        run = tool.run(tool.migrate_command(store, [old, new], new, out, extra=["--mapping", mapping]))
        self.assertEqual(run.exit, 0, run.why(2000))
        database = sqlite3.connect(out)
        found = database.execute("SELECT " + ", ".join(f"ZRESULT{n}" for n in range(len(expressions))) + " FROM ZEXAMPLE").fetchone()
        database.close()
        return found


if __name__ == "__main__":
    unittest.main()
