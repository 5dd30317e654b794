"""The repository's own judge: it agrees with good migrations, and sees what is wrong with bad ones."""
import os
import shutil
import sqlite3
import unittest

from . import ground, owncorpus, ownjudge, tool
from Judge import mutate


class OwnJudge(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.workspace = ground.fast_workspace("judge")
        folder = cls.workspace.name
        cls.old, cls.new = (owncorpus.version("Fixtures/Recipes", v) for v in ("Recipes", "Recipes 2"))
        cls.store, cls.out = os.path.join(folder, "Recipes.sqlite"), os.path.join(folder, "out.sqlite")
        assert owncorpus.make_store(cls.old, cls.store, 30, 4, ["--external", "0.3"], cls.new)
        run = tool.run(tool.migrate_command(cls.store, [cls.old, cls.new], cls.new, cls.out))
        assert run.verdict == "migrated", run.why()

    @classmethod
    def tearDownClass(cls):
        cls.workspace.cleanup()

    def broken(self, sql):
        """A copy of the migrated store after a statement."""
        folder = os.path.join(self.workspace.name, "broken")
        shutil.rmtree(folder, ignore_errors=True)
        path = ground.copy_store(self.out, folder)
        database = sqlite3.connect(path)
        number = database.execute(sql).rowcount
        database.commit()
        database.close()
        self.assertGreater(number, 0, sql)
        return path

    def test_a_migrated_store_is_as_the_models_say(self):
        found = ownjudge.compare(self.store, self.out, self.old, self.new)
        self.assertEqual((found["total"], found["first"]), (0, []))
        self.assertGreater(found["compared"], 1_000)
        self.assertEqual(set(ownjudge.findings(self.out, self.new)) - {"note"}, set())

    def test_every_wrong_value_and_reference_is_seen(self):
        for sql, kind in (("UPDATE ZRECIPE SET ZNAME = 'other' WHERE Z_PK = (SELECT max(Z_PK) FROM ZRECIPE)", "value"),
                          ("UPDATE ZRECIPE SET ZSERVINGS = 5 WHERE Z_PK = (SELECT max(Z_PK) FROM ZRECIPE)", "value"),
                          ("UPDATE ZRECIPE SET ZSUMMARY = NULL WHERE ZSUMMARY IS NOT NULL", "value"),
                          ("DELETE FROM ZSTEP WHERE Z_PK = (SELECT min(Z_PK) FROM ZSTEP)", "objects"),
                          ("UPDATE ZINGREDIENT SET ZRECIPE = NULL WHERE ZRECIPE IS NOT NULL", "references"),
                          ("DELETE FROM Z_8PAIRSWITH", "references")):
            with self.subTest(sql):
                found = ownjudge.compare(self.store, self.broken(sql), self.old, self.new)
                self.assertIn(kind, found["kinds"])

    def test_unsound_stores_are_seen(self):
        for sql, kind in (("UPDATE ZSTEP SET ZRECIPE = 99999 WHERE Z_PK = (SELECT min(Z_PK) FROM ZSTEP)", "dangling"),
                          ("UPDATE ZSTEP SET Z_ENT = 99", "rows"),
                          ("UPDATE Z_PRIMARYKEY SET Z_MAX = 1", "control"),
                          ("UPDATE ZRECIPE SET ZNAME = NULL", "required"),
                          ("UPDATE ZRECIPE SET ZNAME = x'00'", "type"),
                          ("UPDATE Z_MODELCACHE SET Z_CONTENT = x'00'", "modelcache")):
            with self.subTest(sql):
                self.assertIn(kind, ownjudge.findings(self.broken(sql), self.new))

    def test_two_stores_of_one_content_have_one_digest_and_others_have_others(self):
        self.assertEqual(ownjudge.digest(self.out), ownjudge.digest(self.broken("UPDATE ZSTEP SET Z_OPT = Z_OPT")))
        self.assertNotEqual(ownjudge.digest(self.out), ownjudge.digest(self.broken("UPDATE ZSTEP SET Z_OPT = 9")))

    def test_models_that_forbid_inference_are_named(self):
        a, b = (ownjudge.model(owncorpus.version("Fixtures/Ledger", v)) for v in ("Ledger", "Ledger 2"))
        self.assertTrue(any("Account.title" in text for text in ownjudge.lightweight.refusals(a, b)))

    def test_every_kind_of_damage_is_the_same_for_the_same_seed(self):
        self.assertGreater(len(mutate.KINDS), 15)
        for kind in sorted(mutate.KINDS):
            with self.subTest(kind):
                said = []
                for name in ("first", "second"):
                    folder = os.path.join(self.workspace.name, f"{kind}-{name}")
                    os.makedirs(folder)
                    path = os.path.join(folder, "Recipes.sqlite")
                    said.append((mutate.run(self.store, path, 3, kind), ownjudge.state(path)["files"].keys()))
                self.assertEqual(*said)


if __name__ == "__main__":
    unittest.main()
