"""The harness's own judgement: what it must not let pass."""
import os
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

from . import corpus, crashes, differential, ground, tool


def ran(code, *lines, stderr=b"", hung=False):
    return tool.parsed(code, "\n".join(lines).encode(), stderr, 0.1, hung)


MIGRATED = '{"event":"result","verdict":"migrated"}'


class ContractProblems(unittest.TestCase):
    def test_a_good_run_has_none(self):
        self.assertEqual(tool.contract_problems(ran(0, '{"event":"plan"}', MIGRATED)), [])

    def test_each_breach_is_found(self):
        refused = '{"event":"result","verdict":"refused","reasons":[{"message":"why"}]}'
        for run, word in (
                (ran(0, MIGRATED, hung=True), "hung"),
                (ran(-11, MIGRATED), "signal 11"),
                (ran(2, MIGRATED), "not in the contract"),
                (ran(0), "no result line"),
                (ran(0, MIGRATED, '{"event":"plan"}'), "not the last"),
                (ran(0, "hello", MIGRATED), "no JSON"),
                (ran(65, MIGRATED), "verdict migrated with exit 65"),
                (ran(0, refused), "verdict refused with exit 0"),
                (ran(65, '{"event":"result","verdict":"refused","reasons":[]}'), "without a message"),
                (ran(65, '{"event":"result","verdict":"refused","reasons":[{"message":" "}]}'), "without a message"),
                (ran(0, '{"event":"result","verdict":"failed"}'), "failed with exit 0"),
                (ran(65, refused, stderr=b"a worker ended by signal 4"), "crashed"),
                (ran(65, refused, stderr=b"Fatal error: index out of range"), "crashed")):
            problems = tool.contract_problems(run)
            self.assertTrue(any(word in p for p in problems), (word, problems))
        # a worker that we killed ourselves is no crash
        self.assertEqual(tool.contract_problems(ran(0, MIGRATED, stderr=b"a worker ended by signal 9")), [])


class Verdicts(unittest.TestCase):
    def test_documented_cases_allow_one_verdict(self):
        for expected, verdict, outcome in (
                ("lightweight", "migrated", corpus.AS_EXPECTED), ("lightweight", "refused", corpus.FAILED),
                ("refused", "refused", corpus.AS_EXPECTED), ("refused", "needs-mapping", corpus.FAILED),
                ("same-model", "migrated", corpus.FAILED), ("needs-mapping", None, corpus.FAILED)):
            case = {"expected": expected, "certainty": "documented"}
            self.assertEqual(corpus.judge_verdict(case, verdict)[0], outcome, (expected, verdict))

    def test_unspecified_cases_allow_either_but_no_failure(self):
        case = {"expected": "needs-mapping", "certainty": "unspecified"}
        self.assertEqual(corpus.judge_verdict(case, "migrated")[0], corpus.OTHER)
        self.assertEqual(corpus.judge_verdict(case, "needs-mapping")[0], corpus.AS_EXPECTED)
        self.assertEqual(corpus.judge_verdict(case, "failed")[0], corpus.FAILED)
        self.assertEqual(corpus.judge_verdict(case, "same-model")[0], corpus.FAILED)


class Sample(unittest.TestCase):
    CASES = [{"id": i, "store": f"s{i % 7}", "expected": "refused" if i % 50 == 0 else "lightweight",
              "certainty": "documented"} for i in range(500)]

    def test_is_fixed_by_its_seed_and_spreads_over_stores(self):
        one, two = corpus.sample(self.CASES, 60, 1), corpus.sample(self.CASES, 60, 1)
        self.assertEqual([c["id"] for c in one], [c["id"] for c in two])
        self.assertEqual(len({c["id"] for c in one}), 60)
        self.assertNotEqual(one, corpus.sample(self.CASES, 60, 2))
        self.assertEqual({c["store"] for c in one}, {c["store"] for c in self.CASES})
        self.assertEqual(sum(c["expected"] == "refused" for c in one), 10)


class RunDirectory(unittest.TestCase):
    def test_redone_checkpoints_and_torn_events_are_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "copy", "000001.ckpt")
            os.makedirs(os.path.dirname(path))
            for content in (b"a", b"a"):
                with open(path + ".new", "wb") as file:
                    file.write(content)
                if content and os.path.exists(path):
                    before = crashes.checkpoints(folder)
                os.rename(path + ".new", path)
            self.assertEqual(crashes.redone(before, before), [])
            self.assertEqual(crashes.redone(before, crashes.checkpoints(folder)), ["copy/000001.ckpt"])
            with open(os.path.join(folder, "events.jsonl"), "w") as file:
                file.write('{"event":"unit-finished","stage":"copy","unit":1}\n{"event":"unit-fin')
            self.assertEqual(dict(crashes.finished_units(folder)), {("copy", 1): 1})


@unittest.skipUnless(ground.load_oracle(), "the oracle is not there: skipped")
class TheDifferential(unittest.TestCase):
    """Two copies of one store are equal, and each way in which they could differ is seen."""
    TEXT = "entity-mappings:\n" + "".join(
        f"- source: {n}\n  destination: {n}\n" for n in ("Account", "Entry", "Label", "Sheet"))

    def found(self, change, text=TEXT):
        model = os.path.join(ground.ROOT, "Fixtures", "Ledger.xcdatamodeld", "Ledger.xcdatamodel")
        with tempfile.TemporaryDirectory() as folder:
            one, two = (os.path.join(folder, n) for n in ("one.sqlite", "two.sqlite"))
            subprocess.run([ground.fixtures(), "make-store", "--model", model, "--rows", "30", "--output", one],
                           check=True, stdout=subprocess.DEVNULL)
            shutil.copyfile(one, two)
            database = sqlite3.connect(one)
            database.executescript(change)
            database.close()
            return differential.compare(one, two, model, model, text, self.TEXT)

    def test_equal_stores_are_equal_as_a_whole(self):
        found = self.found("")
        self.assertTrue(found.is_whole and found.keeps_keys, (found.differences, found.skipped))
        self.assertEqual(found.counts["objects"], 120)
        self.assertGreater(found.counts["pairs"], 50)

    def test_each_difference_is_found(self):
        for change, word in (
                ("UPDATE ZENTRY SET ZMEMO = 'x' WHERE Z_PK = 5", "Entry.memo"),
                ("UPDATE ZENTRY SET ZKIND = CAST(ZKIND AS TEXT) || '.5' WHERE Z_PK = 5", "Entry.kind"),
                ("DELETE FROM ZENTRY WHERE Z_PK = 5", "Entry: 29 objects"),
                ("UPDATE ZENTRY SET ZACCOUNT = (SELECT max(Z_PK) FROM ZACCOUNT WHERE Z_PK <> ZACCOUNT) "
                 "WHERE Z_PK = 5", "Account.entries"),
                ("UPDATE ZENTRY SET Z_FOK_SHEET = -Z_FOK_SHEET", "Sheet.entries"),
                ("DELETE FROM Z_1LABELS WHERE rowid = 1", "labels")):
            differences = self.found(change).differences
            self.assertTrue(any(word in d for d in differences), (change, differences))

    def test_what_is_said_otherwise_is_not_compared_and_counted(self):
        text = self.TEXT.replace("  destination: Label\n",
                                 '  destination: Label\n  attributes:\n    text: uppercase:($source.text)\n')
        found = self.found("UPDATE ZLABEL SET ZTEXT = 'X'", text)
        self.assertEqual(found.differences, [])
        self.assertEqual(sum(found.skipped.values(), []), ["Label.text"])
        text = self.TEXT.replace("  destination: Label\n", "  destination: Label\n  filter: color != 3\n")
        self.assertIn("Label.color", sum(self.found("DELETE FROM ZLABEL WHERE ZCOLOR = 3", text).skipped.values(), []))


class Tables(unittest.TestCase):
    def test_numbers_stand_to_the_right(self):
        text = ground.table([("a", 1), ("bb", 20)], ("k", "n"))
        self.assertEqual(text.splitlines()[2:], ["a    1", "bb  20"])


if __name__ == "__main__":
    unittest.main()
