"""Random models: what the trials on them take for granted."""
import collections
import random
import unittest

from . import modelchange, modelchanges, modelfuzz, modelxml, randommodels as r


def drawn(seed, versions=3):
    return modelchanges.chain(random.Random(seed), versions)


class RandomModels(unittest.TestCase):
    def test_equal_seeds_give_equal_text(self):
        for seed in range(20):
            first, second = ([modelxml.contents(m) for m in drawn(seed)[0]] for _ in range(2))
            self.assertEqual(first, second)

    def test_names_are_unique_along_every_line_of_inheritance(self):
        for seed in range(100):
            for model in drawn(seed)[0]:
                for name in model.entities:
                    line = [p for e in model.line(name) for p in model.entities[e].properties]
                    self.assertEqual(len(line), len(set(line)), (seed, name))
                self.assertEqual(len({n.upper() for n in model.entities}), len(model.entities), seed)

    def test_relationships_lead_to_entities_and_agree_with_their_inverses(self):
        seen = 0
        for seed in range(100):
            for model in drawn(seed)[0]:
                for entity, found in model.relationships():
                    self.assertIn(found.destination, model.entities, seed)
                    if found.inverse:
                        _, back = model.inverse(found)
                        self.assertIs(model.inverse(back)[1], found, (seed, entity, found.name))
                        seen += 1
        self.assertGreater(seen, 500)

    def test_every_change_and_every_feature_is_drawn(self):
        changes, features = collections.Counter(), collections.Counter()
        for seed in range(400):
            models, said = drawn(seed)
            changes.update(text.split(":")[0] for step in said for text in step)
            for model in models:
                features.update(p.type for _, p in model.attributes())
                for _, p in model.relationships():
                    back = model.inverse(p)
                    features[("to-many" if p.many else "to-one") + (" without inverse" if not back else " by to-many" if back[1].many
                             else " by to-one") + (" reflexive" if back and back[1] is p else "")] += 1
                    features["ordered"] += p.ordered
                for entity in model.entities.values():
                    features.update({"abstract": entity.abstract, "inherits": bool(entity.parent), "renamed": bool(entity.renaming),
                                     "constraint": len(entity.unique), "index": len(entity.indexes)})
        kinds = {f.__name__.replace("_", " ") for f in modelchange.CHANGES}
        self.assertEqual({k for k in kinds if changes[k] < 5}, set())
        wanted = set(r.TYPES) | {"Composite", "Undefined", "to-one without inverse", "to-many without inverse", "to-one by to-one",
                                 "to-one by to-many", "to-many by to-many", "to-one by to-one reflexive", "ordered", "abstract",
                                 "to-many by to-many reflexive", "inherits", "renamed", "constraint", "index"}
        self.assertEqual({f for f in wanted if features[f] < 20}, set())


class AllowedVerdicts(unittest.TestCase):
    def test_only_where_apple_says_nothing_there_is_a_choice(self):
        Refusal = collections.namedtuple("Refusal", "by certainty reason", defaults=["attribute-type"])
        for refusals, word, verdicts in (
                ([], "lightweight", {"migrated"}),
                ([], "same-model", {"same-model"}),
                ([("model", "documented")], "needs-mapping", {"needs-mapping"}),
                ([("data", "documented")], "refused", {"refused"}),
                ([("data", "unspecified")], "refused", {"refused", "migrated"}),
                ([("model", "unspecified"), ("data", "documented")], "needs-mapping", {"needs-mapping", "refused"})):
            wanted = {"verdict": word, "refusals": [Refusal(*x) for x in refusals], "shares an entity": True,
                      "inherited constraint": False}
            self.assertEqual(modelfuzz.allowed_verdicts(wanted), verdicts, refusals)
        self.assertEqual(modelfuzz.allowed_verdicts(wanted | {"verdict": "lightweight", "refusals": [], "shares an entity": False}),
                         {"migrated", "refused"})
