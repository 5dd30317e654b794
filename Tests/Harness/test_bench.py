"""The benchmark's arithmetic: ratios, goals, comparisons, the history and its picture."""
import os
import sqlite3
import tempfile
import unittest
import xml.etree.ElementTree

from . import benchhistory, benchreport, benchresume, benchsql
from .benchrivals import Sample


def samples(*seconds):
    return [Sample(s, s / 2) for s in seconds]


class Ratios(unittest.TestCase):
    def test_a_ratio_is_the_median_of_the_rounds_and_not_the_ratio_of_medians(self):
        # The second round ran on a machine that was four times as slow.
        self.assertEqual(benchreport.ratio(samples(1, 8, 3), samples(2, 8, 2)), 1)
        self.assertEqual(benchreport.ratio(samples(1, 8, 3), samples(2, 8, 2), "processor"), 1)

    def test_rounds_that_do_not_match_are_an_error(self):
        with self.assertRaises(ValueError):
            benchreport.ratio(samples(1, 2), samples(1))

    def test_figures_have_minimum_median_and_maximum(self):
        found = benchreport.contenders({"godwit": samples(3, 1, 2), "script": samples(1, 1, 1)})
        self.assertEqual(found["godwit"]["seconds"], {"min": 1, "median": 2, "max": 3})
        self.assertEqual(found["godwit"]["processorSeconds"], {"min": 0.5, "median": 1, "max": 1.5})
        self.assertEqual((found["godwit"]["ratio"], found["script"]["ratio"]), (2, 1))

    def test_goals_depend_on_the_size_and_are_judged_on_demand(self):
        found = {"a": {"godwit": samples(4), "script": samples(10), "alter": samples(5)}}
        small, large = (benchreport.goals(found, megabytes) for megabytes in (100, 1500))
        self.assertEqual([(g["goal"], g["met"]) for g in small], [("a: godwit to script", True)])
        self.assertEqual([(g["goal"], g["met"]) for g in large], [("a: godwit to script", False), ("a: godwit to alter", True)])
        self.assertEqual([benchreport.exit_code(large, d) for d in (False, True)], [0, 1])
        self.assertEqual(benchreport.exit_code(small, True), 0)

    def test_a_policys_rate_counts_the_stages_with_hooks(self):
        stages = [{"stage": "copy", "rows": 600, "processorSeconds": 2}, {"stage": "link", "rows": 600, "processorSeconds": 1},
                  {"stage": "validate", "rows": 600, "processorSeconds": 9}]
        self.assertEqual(benchreport.policy_rate([{"stages": stages}]), 200)

    def test_stages_without_processor_seconds_say_nothing_of_them(self):
        stages = [{"stage": "copy", "units": 1, "rows": 5, "bytes": 9, "seconds": 1, "processorSeconds": 2},
                  {"stage": "commit", "units": 1, "rows": 0, "bytes": 0, "seconds": 3}]
        copy, commit = benchreport.stages([{"stages": stages}] * 3)
        self.assertEqual((copy["seconds"], copy["processorSeconds"], commit["seconds"]), (1, 2, 3))
        self.assertNotIn("processorSeconds", commit)


class Stores(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="godwit-bench-")
        self.addCleanup(self.folder.cleanup)
        self.made = 0

    def store(self, columns="Z_PK INTEGER PRIMARY KEY, ZA INTEGER, ZB VARCHAR",
              rows="(1, 7, 'x'), (3, NULL, 'y')", index="ZT (ZB)"):
        self.made += 1
        path = os.path.join(self.folder.name, f"{self.made}.sqlite")
        database = sqlite3.connect(path)
        database.execute(f"CREATE TABLE ZT ({columns})")
        database.execute(f"INSERT INTO ZT (Z_PK, ZA, ZB) VALUES {rows}")
        database.execute(f"CREATE INDEX byB ON {index}")
        database.commit()
        database.close()
        return path

    def test_equal_rows_are_equal_whatever_the_order_of_columns(self):
        other = self.store(columns="ZB VARCHAR, Z_PK INTEGER PRIMARY KEY, ZA INTEGER")
        self.assertEqual(benchsql.differences(self.store(), other), [])

    def test_every_difference_is_found(self):
        for name, other in {
                "a value": {"rows": "(1, 7, 'x'), (3, NULL, 'z')"},
                "NULL": {"rows": "(1, 7, 'x'), (3, 0, 'y')"},
                "a storage class": {"columns": "Z_PK INTEGER PRIMARY KEY, ZA FLOAT, ZB VARCHAR"},
                "a row less": {"rows": "(1, 7, 'x')"},
                "a row more": {"rows": "(1, 7, 'x'), (3, NULL, 'y'), (4, 1, 'y')"},
                "a key": {"rows": "(1, 7, 'x'), (2, NULL, 'y')"},
                "a column": {"columns": "Z_PK INTEGER PRIMARY KEY, ZA INTEGER, ZB VARCHAR, ZC INTEGER"},
                "an index": {"index": "ZT (ZA)"},
                "an index's order": {"index": "ZT (ZB DESC)"}}.items():
            with self.subTest(name):
                self.assertEqual(len(benchsql.differences(self.store(), self.store(**other))), 1)

    def test_rows_one_by_one_give_what_the_script_gives(self):
        source = self.store()
        script = os.path.join(self.folder.name, "script.sql")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"""-- a comment; with a semicolon
ATTACH '{source}' AS source;
BEGIN;
CREATE TABLE ZT (Z_PK INTEGER PRIMARY KEY, ZA INTEGER, ZB VARCHAR);
CREATE INDEX byB ON ZT (ZB);
INSERT INTO ZT
SELECT Z_PK, ZA, upper(ZB) || ';'
  FROM source.ZT
 ORDER BY Z_PK;
COMMIT;
""")
        out = [os.path.join(self.folder.name, name) for name in ("apply", "rows")]
        for path, action in zip(out, (benchsql.apply, benchsql.copy_rows)):
            database = benchsql.connect(path)
            action(database, script)
            self.assertEqual(database.execute("SELECT * FROM ZT").fetchall(), [(1, 7, "X;"), (3, None, "Y;")])
            database.close()
        self.assertEqual(benchsql.differences(*out), [])

    def test_a_script_that_ends_inside_a_statement_is_an_error(self):
        with self.assertRaises(ValueError):
            list(benchsql.statements("BEGIN;\nINSERT INTO a VALUES ('x"))

    def test_finished_units_are_counted_again_when_they_come_again_and_torn_lines_are_not(self):
        unit = '{"event":"unit-finished","stage":"copy","unit":0,"rows":5,"bytes":7}\n'
        with open(os.path.join(self.folder.name, "events.jsonl"), "w", encoding="utf-8") as file:
            file.write(unit + '{"event":"stage","stage":"copy"}\n' + unit + unit[:30])
        self.assertEqual(benchresume.finished(self.folder.name), {"copy": [2, 10, 14]})
        self.assertEqual(benchresume.finished(os.path.join(self.folder.name, "nothing")), {})


class History(unittest.TestCase):
    def line(self, commit, machine="m", **results):
        return {"commit": commit, "date": "2026-01-01", "machine": machine,
                "results": {name: {"ratio": value} for name, value in results.items()}}

    def test_a_commit_and_machine_has_one_line(self):
        lines = [self.line("1", a=1), self.line("2", a=2)]
        lines = benchhistory.recorded(lines, self.line("1", a=3, b=4))
        self.assertEqual(lines, [self.line("1", a=3, b=4), self.line("2", a=2)])
        lines = benchhistory.recorded(lines, self.line("1", machine="n", a=5))
        self.assertEqual(len(lines), 3)

    def test_a_line_that_is_written_is_read_again(self):
        with tempfile.TemporaryDirectory(prefix="godwit-bench-") as folder:
            path = os.path.join(folder, "Benchmarks", "history.jsonl")
            for value in (1.5, 1.25):
                benchhistory.record({"a, 100 MB": {"ratio": value}}, path)
            (found,) = benchhistory.load(path)
            self.assertEqual(found["results"], {"a, 100 MB": {"ratio": 1.25}})
            self.assertRegex(found["commit"], r"^[0-9a-f]{10}\+?$")

    def test_the_picture_has_a_line_and_a_word_for_each_result_of_the_last_machine(self):
        lines = [self.line("aaa", a=1.5, b=0.4), self.line("bbb", machine="other", c=9), self.line("<c>", a=0.5, b=0.2)]
        root = xml.etree.ElementTree.fromstring(benchhistory.picture(lines))
        name = "{http://www.w3.org/2000/svg}"
        texts = [t.text for t in root.iter(name + "text")]
        self.assertEqual(sum(1 for _ in root.iter(name + "polyline")), 2)
        self.assertEqual(sum(1 for _ in root.iter(name + "circle")), 4)
        for word in ("a: 0.50", "b: 0.20", "aaa", "<c>", "commit", "times the script", "1"):
            self.assertIn(word, texts)
        self.assertNotIn("bbb", texts)
        self.assertTrue(root.find(name + "title").text)

    def test_a_better_ratio_is_drawn_lower_and_the_script_is_at_one(self):
        root = xml.etree.ElementTree.fromstring(benchhistory.picture([self.line("1", a=4), self.line("2", a=0.25)]))
        name = "{http://www.w3.org/2000/svg}"
        first, second = (float(c.get("cy")) for c in root.iter(name + "circle"))
        (one,) = (float(x.get("y1")) for x in root.iter(name + "line") if x.get("class") == "one")
        self.assertTrue(first < one < second)
        self.assertAlmostEqual(one - first, second - one, delta=0.2)

    def test_the_picture_refers_to_nothing_outside(self):
        text = benchhistory.picture([self.line("1", a=1)])
        self.assertIn("prefers-color-scheme: dark", text)
        for word in ("href", "url(", "@import", "<script"):
            self.assertNotIn(word, text)


if __name__ == "__main__":
    unittest.main()
