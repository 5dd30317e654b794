"""Random mapping models over random pairs of models: sound or refused, and the same however they are run.

Each trial draws two versions and a store as `model-fuzz` does, has the mapping model inferred and written down,
and changes it: filters, mappings left out, made twice or led to other entities, other values and relationships,
another order. What becomes of it no oracle knows, but a destination must be sound by the oracle's `check` and
`ddl` and by `verify`; `mapping check` and `migrate` must agree; and other workers, shards, assemblies, kept keys,
and policies that override nothing must give the same objects. A chain whose steps have mapping models must give
what migrating step by step gives.
"""
import os
import re
import sys

from . import defaults, ground, judge, modelfuzz, tool

ROW = re.compile(r"^    (\S+): .*$", re.MULTILINE)
NUMBERS = {100, 200, 300, 400, 500, 600}     # attribute types: the integers, Decimal, Double, Float
TYPE = re.compile(r"^  type: (\w+)\n", re.MULTILINE)
CONSTANTS = ["default", "nil", "1", "2.5", "'x'", "now()", "$entityMapping.name", 'FUNCTION($source, "objectID").absoluteString',
             "godwit.uuid('e621e1f8-c36c-495a-93fc-0c247a3e6e5f')"]
INSTANCES = 'FUNCTION($manager, "destinationInstancesForEntityMappingNamed:sourceInstances:", "{}", $source)'


class Entry:
    """One entity mapping, as text."""

    def __init__(self, text):
        self.text = text

    def value(self, key):
        found = re.search(rf"^(?:- |  ){key}: (.*)$", "- " + self.text, re.MULTILINE)
        return found and found[1].strip("\"'")

    @property
    def kind(self):
        found = TYPE.search(self.text)
        return found and found[1]

    def rows(self, section):
        """The lines of a section's properties: [(start, end, name)]."""
        found = re.search(rf"^  {section}:\n((?:    .*\n)+)", self.text, re.MULTILINE)
        return [(found.start(1) + r.start(), found.start(1) + r.end(), r[1]) for r in ROW.finditer(found[1])] if found else []

    def put(self, row, value):
        start, end, name = row
        self.text = f"{self.text[:start]}    {name}: {value}{self.text[end:]}"

    def add(self, line):
        first, rest = self.text.split("\n", 1)
        self.text = f"{first}\n  {line}\n{rest}"


class Edits:
    """Changes of a mapping model's text."""

    def __init__(self, rng, text, source, destination):
        self.rng, self.source, self.destination, self.log = rng, source, destination, []
        self.head, *entries = defaults.ENTRY.split(text)
        self.entries = [Entry(e) for e in entries]

    @property
    def text(self):
        return self.head + ("".join("- " + e.text for e in self.entries) or "  []\n")

    def change(self):
        edits = [self.filter, self.filter, self.twice, self.drop, self.lead, self.relate, self.relate, self.give, self.give,
                 self.contradict, self.contradict, self.shuffle]
        for _ in range(self.rng.randint(0, 4)):
            if self.entries:
                edit, entry = self.rng.choice(edits), self.rng.choice(self.entries)
                before = self.text
                edit(entry)
                if self.text != before:
                    self.log.append(f"{edit.__name__} {entry.value('name')}")

    def properties(self, entry, kind):
        """Names that an expression can write as they are; of composites also the key paths of the elements."""
        found = self.source.properties(entry.value("source")) if entry.value("source") else {}
        paths = [(name, *leaf) for name, (_, p) in found.items() if p.kind == kind and not p.transient
                 for leaf in [(), *(path for path, _ in getattr(p, "elements", None) or [])]]
        return [".#".join(path) for path in paths if all(re.fullmatch(r"[A-Za-z]\w*", name) for name in path)]

    def paths(self, entry):
        """Key paths of one relationship or two."""
        found, paths = self.source.properties(entry.value("source")), []
        for name in self.properties(entry, "relationship"):
            paths.append(f"#{name}")
            further = self.source.properties(found[name][1].destination).items()
            paths += [f"#{name}.#{n}" for n, (_, p) in further if p.kind == "relationship" and re.fullmatch(r"[A-Za-z]\w*", n)]
        return paths

    def numbers(self, entry):
        """The attributes that arithmetic takes."""
        found = self.source.properties(entry.value("source"))
        return [n for n in self.properties(entry, "attribute") if n in found and found[n][1].type in NUMBERS]

    def filter(self, entry):
        if entry.kind not in ("copy", "transform") or entry.value("filter"):
            return
        many = [r for r in self.properties(entry, "relationship") if self.source.properties(entry.value("source"))[r][1].many]
        tests = ["TRUEPREDICATE", "FALSEPREDICATE"] + [f"#{a} != nil" for a in self.properties(entry, "attribute")]
        entry.add("filter: '" + self.rng.choice(tests + [f"#{r}.@count > 0" for r in many]) + "'")

    def twice(self, entry):
        name = entry.value("name")
        self.entries.append(Entry(entry.text.replace(name, f"{name}Again{len(self.entries)}", 1)))

    def drop(self, entry):
        self.entries.remove(entry)

    def lead(self, entry):
        concrete = [e for e in self.destination.order if not self.destination.entities[e].abstract]
        if entry.value("source") and concrete:
            entry.text = f"name: {entry.value('name')}\n  source: {quoted(entry.value('source'))}\n  destination: {quoted(self.rng.choice(concrete))}\n"

    def relate(self, entry):
        rows = entry.rows("relationships")
        if rows and entry.value("source"):
            along = ["{ along: " + quoted(path) + " }" for path in self.paths(entry)]
            entry.put(self.rng.choice(rows),
                      self.rng.choice(["default", INSTANCES.format(self.rng.choice(self.entries).value("name")), *along]))

    def give(self, entry):
        rows = entry.rows("attributes")
        if rows and entry.value("source"):
            values = CONSTANTS + [f"$source.#{a}" for a in self.properties(entry, "attribute")]
            values += [f"$source.#{a} * {by}" for a in self.numbers(entry) for by in ("-1", "-1e-60")]
            entry.put(self.rng.choice(rows), self.rng.choice(values))

    def contradict(self, entry):
        """Both sides of a relationship are set, by expressions that know nothing of each other."""
        sides = [(n, p) for n, (_, p) in self.destination.properties(entry.value("destination")).items()
                 if p.kind == "relationship" and self.destination.inverse(p)] if entry.value("destination") else []
        if not sides:
            return
        name, side = self.rng.choice(sides)
        back = self.destination.inverse(side)[1].name
        for other in [entry] + [e for e in self.entries if e.value("destination") in self.destination.subtree(side.destination)]:
            along = ["{ along: " + quoted("#" + r) + " }" for r in self.properties(other, "relationship")]
            for row in other.rows("relationships"):
                if row[2].strip("\"'") == (name if other is entry else back) and other.value("source"):
                    other.put(row, self.rng.choice(along + [INSTANCES.format(self.rng.choice(self.entries).value("name"))]))
                    break

    def shuffle(self, _):
        self.rng.shuffle(self.entries)

    def lists(self, entry):
        """The ordered relationships of what an entity mapping makes."""
        found = self.destination.properties(entry.value("destination")) if entry.value("destination") else {}
        return [name for name, (_, p) in found.items() if p.kind == "relationship" and p.ordered]

    @property
    def orders_by_keys(self):
        """Whether a list may be filled from its inverse alone: its order is that of the keys, then."""
        return any(name not in [row[2].strip("\"'") for row in entry.rows("relationships")
                                if "destinationInstancesForSourceRelationshipNamed" in entry.text[row[0]:row[1]]]
                   for entry in self.entries for name in self.lists(entry))

    def split(self):
        """The same with one entity mapping in two halves, which take every object between them; None where a
        name or an order could tell the halves from the whole."""
        whole = [e for e in self.entries if e.kind in ("copy", "transform") and not e.value("filter")
                 and f'"{e.value("name")}"' not in self.text and self.properties(e, "attribute")]
        if any(map(self.lists, self.entries)) or not whole or "$entityMapping" in self.text or any(line.startswith("contradict") for line in self.log):
            return None
        copy = Edits(self.rng, self.text, self.source, self.destination)
        entry = copy.entries[self.entries.index(self.rng.choice(whole))]
        name, attribute = entry.value("name"), self.rng.choice(self.properties(entry, "attribute"))
        half = Entry(entry.text.replace(name, f"{name}Half", 1))
        entry.add(f"filter: '#{attribute} == nil'")
        half.add(f"filter: '#{attribute} != nil'")
        # Side by side: the order of mappings decides which of several objects a to-one gets.
        copy.entries.insert(copy.entries.index(entry) + self.rng.randint(0, 1), half)
        return copy.text

    def with_policies(self, name, odds):
        """The same with a policy that overrides nothing in some of the entity mappings."""
        if not self.entries:
            return self.text
        copy = Edits(self.rng, self.text, self.source, self.destination)
        for entry in copy.entries:
            if entry.value("source") and entry.value("destination") and self.rng.random() < odds:
                entry.text = TYPE.sub("", entry.text)
                entry.add(f"policy: {name}")
        return copy.text


def quoted(name):
    return '"' + name + '"'


class MappingTrial(modelfuzz.Trial):
    """One mapping model, or one chain of them, in a folder of its own."""

    script = "scripts/mapping-fuzz"
    most_changes = 4

    def pair(self, store):
        inferred = self.inferred(*self.paths)
        if inferred:
            self.changed(store, inferred)

    def chain(self, store):
        mappings = [self.inferred(a, b) for a, b in zip(self.paths, self.paths[1:])]
        if all(mappings):
            self.chained(store, mappings)

    def inferred(self, a, b):
        path = super().inferred(a, b)
        self.counts["nothing can be inferred"] += path is None
        return path

    def by(self, name, store, mapping, *more, env=None):
        """(run, its output)."""
        a, b = self.paths
        out = self.place(name)
        run = self.migrate(store, [a, b], b, out, ["--mapping", mapping, *more], env)
        if run.verdict == "failed":
            self.problem(f"{name}: {run.why()}")
        return run, out

    def written(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def changed(self, store, inferred):
        a, b = self.paths
        with open(inferred) as file:
            edits = Edits(self.rng, file.read(), judge.model(a), judge.model(b))
        edits.change()
        self.changes += edits.log
        mapping = self.written("changed.yaml", edits.text)
        check = self.godwit("mapping", "check", mapping, a, b)
        run, out = self.by("out", store, mapping, "--renumber")
        self.counts[f"{run.verdict}, check {check.exit}"] += 1
        if run.verdict == "same-model":     # mapping models are not looked at
            return
        if (check.exit == 0) != (run.verdict in ("migrated", "refused")):
            self.problem(f"mapping check: exit {check.exit}, migrate: {run.why()}; {check.why()}")
        if run.verdict == "needs-mapping":
            return
        env = tool.environment(**({"GODWIT_ASSEMBLY": "sqlite"} if self.rng.random() < .5 else {}))
        ways = [("ways", mapping, ["--workers", str(self.rng.randint(1, 4)), "--shard-bytes", self.rng.choice(["4096", "16384"])]),
                ("whole policies", self.written("whole.yaml", edits.with_policies(defaults.WHOLE, .7)), []),
                ("cut policies", self.written("cut.yaml", edits.with_policies(defaults.CUT, .7)), ["--shard-bytes", "4096"])]
        others = [(name, *self.by(name, store, file, "--renumber", *more, env=env)) for name, file, more in ways]
        for name, other, _ in others:
            if other.verdict != run.verdict:
                self.problem(f"{name}: {other.why()}; before: {run.why()}")
        if run.verdict == "migrated":
            self.sound(out, b)
            # Each run has a time of its own.
            timed = "now()" in edits.text
            digest = judge.digest(out, b)
            for name, other, output in others:
                if other.verdict == "migrated" and not timed and judge.digest(output, b) != digest:
                    self.problem(f"{name}: other objects")
            # The text of an object's URI has its key, and keys decide which of several objects a target with
            # room for one is given to.
            shared = any(loss["kind"] == "shared-target" for loss in run.result["losses"])
            by_keys = "objectID" in edits.text or edits.orders_by_keys or shared or timed
            graph = None if by_keys else judge.graph(out, b)
            self.halved(store, edits.split(), graph)
            self.kept(store, mapping, graph)

    def sound(self, out, b):
        self.counts["outputs judged"] += 1
        super().sound(out, b)
        verify = self.godwit("verify", out, "--models", b)
        if verify.exit:
            self.problem(f"verify: exit {verify.exit}, {modelfuzz.findings(verify)[:3] or verify.stderr[-300:]}")

    def halved(self, store, text, graph):
        """Two entity mappings that share the objects of one make the same objects."""
        if not text or not graph:
            return
        run, halves = self.by("halves", store, self.written("halves.yaml", text), "--renumber")
        self.counts[f"in halves: {run.verdict}"] += 1
        if run.verdict != "migrated":
            self.problem(f"in halves: {run.why()}")
        elif judge.graph(halves, self.paths[1]) != graph:
            self.problem("in halves: other objects")

    def kept(self, store, mapping, graph):
        """Without --renumber objects keep their keys where they can; they are the same objects."""
        run, out = self.by("kept", store, mapping)
        if run.verdict != "migrated":
            self.problem(f"with keys kept: {run.why()}")
        elif graph and judge.graph(out, self.paths[1]) != graph:
            self.problem("with keys kept: other objects")

    def chained(self, store, mappings):
        for path, a, b in zip(mappings, self.paths, self.paths[1:]):
            with open(path) as file:
                text = file.read()
            names = f"source-model: {os.path.basename(a)}\ndestination-model: {os.path.basename(b)}\n"
            self.written(os.path.basename(path), text.replace("mapping-model: 1\n", "mapping-model: 1\n" + names, 1))
        given = [m for m in mappings if self.rng.random() < .7]
        here, failed = store, None
        for number, (path, a, b) in enumerate(zip(mappings, self.paths, self.paths[1:])):
            out = self.place("steps", f"{number}.sqlite")
            run = self.migrate(here, [a, b], b, out, ["--mapping", path] if path in given else [])
            if run.verdict != "migrated":
                failed = run
                break
            here = out
        out, last = self.place("out"), self.paths[-1]
        words = [w for path in given for w in ("--mapping", path)]
        name = os.path.splitext(os.path.basename(last))[0]
        run = self.migrate(store, [os.path.dirname(last)], name, out, ["--chain", "progressive", *words])
        self.counts[f"chains with {len(given)} mapping models: {run.verdict}"] += 1
        if (failed is None) != (run.verdict == "migrated"):
            self.problem(f"step by step: {failed and failed.why()}; at once: {run.why()}")
        elif failed is None and judge.digest(out, last) != judge.digest(here, last):
            self.problem("the chain gives other objects than its steps")


if __name__ == "__main__":
    ground.use_policies()
    sys.exit(modelfuzz.main(MappingTrial, __doc__))
