"""Random model pairs and chains, migrated and judged.

Each trial draws a model, changes it, fills a store of the first version and migrates it. Verdicts are compared
with the oracle's; an output is judged by the oracle (`lightweight`, `ddl`, `check`) and by `godwit verify`; a
second run with another number of workers, shard size, assembly and place, killed or not, must give the same
objects. Chains of versions: `--chain progressive` must give what migrating step by step gives.
"""
import argparse
import collections
import concurrent.futures
import os
import random
import shutil
import sys
import tempfile
import time

from . import corpus, fuzzstore, ground, judge, modelchanges, modelxml, processes, tool

TIMEOUT = 60
BATCH = 500

# Why a mapping model may be refused where the inferred migration is not.
STRICTER = ("validation:", "too large for Integer", "too small for Integer", "to which the relationship may not point")


class Trial:
    """One pair or chain, in a folder of its own."""

    script = "scripts/model-fuzz"
    most_changes = 12

    def __init__(self, seed, number, folder, only_chains=False):
        self.rng = random.Random(f"{seed}/{number}")
        self.folder, self.counts, self.problems, self.commands = folder, collections.Counter(), [], []
        self.chain_odds = 1 if only_chains else .15

    # -- running

    def godwit(self, word, store, *more, env=None):
        command = [ground.godwit(), word, store, *more, "--json"]
        run = tool.run(command, TIMEOUT, env=env)
        self.note(command, run, env)
        return run

    def note(self, command, run, env=None):
        words = [f"{k}={v}" for k, v in (env or {}).items() if k.startswith("GODWIT_")] + command
        self.commands.append(f"{' '.join(map(fuzzstore.shell, words))}\n# exit {run.exit}, {run.verdict or ''} {run.why(600)}")

    def problem(self, text):
        self.problems.append(text)

    def migrate(self, store, models, to, output=None, more=(), env=None):
        words = [w for model in models for w in ("--models", model)]
        words += ["--to", to] + (["--output", output] if output else []) + list(more)
        run = self.godwit("migrate", store, *words, env=env)
        for text in tool.contract_problems(run):
            self.problem(f"migrate: {text}")
        return run

    # -- the trial

    def run(self):
        self.counts["chains" if (is_chain := self.rng.random() < self.chain_odds) else "pairs"] += 1
        versions, most = (self.rng.randint(3, 5), 4) if is_chain else (2, self.most_changes)
        models, self.changes = modelchanges.chain(self.rng, versions, most)
        if is_chain:
            fuzzstore.tell_apart(models)
        self.paths = modelxml.write_bundle(self.folder, models)
        store, words = fuzzstore.make(self.rng, self.folder, self.paths[0])
        self.commands.append(words)
        if store is None:
            return self.unmade(words)
        found = fuzzstore.unsound(store, self.paths[0])
        if found:
            self.problem(f"the source store is not sound before anything was done: {found}")
            return
        self.changes += fuzzstore.disturb(self.rng, store, self.paths[0])
        before = judge.state(store)
        self.chain(store) if is_chain else self.pair(store)
        for text in judge.changes(before, judge.state(store), ("out", "again", "steps")):
            self.problem(f"the source was touched: {text}")

    def unmade(self, words):
        """No store can be made of a model whose tables would have one name."""
        self.counts["without a store: tables of one name"] += 1
        if "one name" not in words and "same name" not in words and "both" not in words:
            self.problem(f"no store could be made: {words}")

    def pair(self, store):
        a, b = self.paths
        wanted = judge.infer(store, a, b)
        plan = self.godwit("plan", store, "--models", a, "--models", b, "--to", b)
        for text in tool.contract_problems(plan):
            self.problem(f"plan: {text}")
        out = self.place("out")
        run = self.migrate(store, [a, b], b, out)
        self.verdicts(run, plan, wanted)
        if run.verdict == "migrated":
            self.judged(store, out, a, b, wanted)
            self.again(store, a, b, judge.digest(out, b))
            if self.rng.random() < .3:
                self.mapped(store, a, b, out, run.result.get("losses") or [])
        elif os.path.exists(out):
            self.problem(f"{run.verdict}, and there is an output")

    def verdicts(self, run, plan, wanted):
        self.counts[f"{run.verdict}"] += 1
        if run.verdict not in allowed_verdicts(wanted):
            self.problem(f"verdict {run.verdict}, the oracle says {wanted['verdict']} {wanted['reasons'][:2]}: {run.why()}")
        if plan.verdict != run.verdict:
            self.problem(f"plan says {plan.verdict}, migrate {run.verdict}: {plan.why()} / {run.why()}")

    def judged(self, store, output, a, b, wanted):
        """The oracle's opinion of an output, and our own."""
        if not os.path.exists(output):
            return self.problem("migrated, and there is no output")
        problems, _ = corpus.judge_output(store, output, a, b, wanted["unspecified"] or (), counts_of(b))
        for text in problems:
            self.problem(text)
        self.counts["outputs judged"] += 1
        verify = self.godwit("verify", output, "--models", b)
        if verify.exit == 0:
            return
        # What the source had is carried. That rows break a rule of the new model is no fault of theirs or ours.
        own = self.godwit("verify", store, "--models", a)
        known = collections.Counter(f["kind"] for f in findings(own))
        fresh = collections.Counter(f["kind"] for f in findings(verify) if f["kind"] != "validation") - known
        if verify.exit != 65 or own.exit == 0 or fresh:
            self.problem(f"verify of the output: exit {verify.exit}, {findings(verify)[:3] or verify.stderr[-300:]}")

    def again(self, store, a, b, digest):
        """The same migration another way: workers, shards, assembly, in place, killed and run again."""
        more = ["--workers", str(self.rng.randint(1, 4)), "--shard-bytes", str(self.rng.choice([4096, 16384, 1 << 20]))]
        env = {"GODWIT_ASSEMBLY": "sqlite"} if self.rng.random() < .5 else {}
        copy = ground.copy_store(store, self.place("again", ""))
        in_place = self.rng.random() < .5
        output = None if in_place else self.place("out again")
        killed = self.rng.random()
        if killed < .15:
            self.counts["killed after a step"] += 1
            step = str(self.rng.randint(1, 40))
            self.tried(copy, a, b, output, more, tool.environment(**env, GODWIT_KILL_AFTER_STEP=step))
        elif killed < .25:
            self.counts["killed at a moment"] += 1
            self.kill(copy, a, b, output, more, tool.environment(**env))
        run = self.migrate(copy, [a, b], b, output, more, tool.environment(**env))
        how = f"again with {' '.join(more)} {env}{' in place' if in_place else ''}{', killed' if killed < .25 else ''}"
        if run.verdict not in ("migrated", "same-model" if in_place and killed < .25 else "migrated"):
            return self.problem(f"{how}: {run.why()}")
        self.counts["runs in place" if in_place else "runs beside"] += 1
        result = output or copy
        if judge.digest(result, b) != digest:
            self.problem(f"{how}: other objects than the first run's")
        if in_place:
            self.backup(store, copy, a)

    def mapped(self, store, a, b, inferred, losses):
        """By the inferred mapping model, written down and read again: the same objects under other keys."""
        mapping = self.inferred(a, b)
        if not mapping or self.godwit("mapping", "check", mapping, a, b).exit:
            return self.problem("inferred, and there is no mapping model that passes its check")
        out = self.place("mapped")
        run = self.migrate(store, [a, b], b, out, ["--mapping", mapping])
        self.counts[f"by the inferred mapping model: {run.verdict}"] += 1
        if run.verdict != "migrated":
            # A mapping model's objects are validated as an application's are, and its numbers are not cut.
            if not any(text in run.why(limit=None) for text in STRICTER):
                self.problem(f"by the inferred mapping model: {run.why()}")
            return
        self.sound(out, b)
        # Of two new inverses the one takes what each side says, the other one side's word; of a relationship that
        # becomes its own inverse likewise. A reference to nothing is dropped by the one and carried by the other.
        # Where two relationships of the source have changed inverses, the sides say different things: the one
        # keeps the to-one's word, the other the last one, and counts what the first one loses.
        dropped = {loss["kind"] for loss in [*losses, *run.result["losses"]]} & {"relationship", "shared-target"}
        # Of an element that changes its type inference drops the values; an expression converts numbers.
        elements = any(loss["kind"] == "attribute" and "." in loss["property"] for loss in losses)
        # Of an ordered to-many that is new and the inverse of an old to-one the one keeps the places, the other
        # has them in the order of the objects.
        with open(mapping, encoding="utf-8") as file:
            new = {line.strip().removesuffix(": default") for line in file if line.endswith(": default\n")}
        if judge.has_own_inverse(b) or dropped or elements or new & judge.ordered(b) or run.result.get("findings"):
            return
        self.counts["graphs compared"] += 1
        if judge.graph(out, b) != judge.graph(inferred, b):
            self.problem("by the inferred mapping model: other objects than without it")

    def inferred(self, a, b):
        """The file of the inferred mapping model; None where there is none."""
        path = os.path.join(self.folder, os.path.basename(b) + ".yaml")
        return None if self.godwit("mapping", "infer", a, b, "--output", path).exit else path

    def sound(self, out, b):
        """What a mapping model has made, by the oracle."""
        text, _, differs = judge.schema(out, b)
        found = judge.findings(out, b)
        if text != "exact" or judge.unsound(found):
            self.problem(f"by a mapping model: ddl {text} {differs[:1]}, check {found}")

    def tried(self, store, a, b, output, more, env):
        words = ["--models", a, "--models", b, "--to", b] + (["--output", output] if output else []) + more
        return self.godwit("migrate", store, *words, env=env)

    def kill(self, store, a, b, output, more, env):
        """kill -9 of the run and of its workers at a random moment."""
        command = tool.migrate_command(store, [a, b], b, output, extra=more)
        process = tool.start(command, env=env)
        time.sleep(self.rng.random() * .15)
        held = processes.handles([process.pid, *processes.descendants(process.pid)])
        for handle in held:
            handle.send(9)
        process.communicate()
        processes.wait_gone(held, 10)
        for handle in held:
            handle.close()

    def backup(self, store, copy, a):
        """What was in place before is beside it now, with every object."""
        folder = os.path.dirname(copy)
        kept = [n for n in os.listdir(folder) if ".godwit-backup-" in n and not n.startswith(".")
                and not n.endswith(("-wal", "-shm", "-journal"))]
        if len(kept) != 1:
            self.problem(f"in place: {len(kept)} backups: {sorted(os.listdir(folder))}")
        elif judge.digest(os.path.join(folder, kept[0]), a) != judge.digest(store, a):
            self.problem("in place: the backup has other objects than the source")

    def chain(self, store):
        """Step by step, each step judged; then all of it at once."""
        here, digest = store, None
        for number, (a, b) in enumerate(zip(self.paths, self.paths[1:]), 2):
            out = self.place("steps", f"{number}.sqlite")
            wanted = judge.infer(here, a, b)
            run = self.migrate(here, [a, b], b, out)
            if run.verdict not in allowed_verdicts(wanted):
                return self.problem(f"step {number}: verdict {run.verdict}, the oracle says {wanted['verdict']} "
                                    f"{wanted['reasons'][:2]}: {run.why()}")
            if run.verdict != "migrated":
                self.counts["chains that stop at a step"] += 1
                digest = None
                break
            self.judged(here, out, a, b, wanted)
            here, digest = out, judge.digest(out, b)
        out = self.place("out")
        bundle = os.path.dirname(self.paths[0])
        name = os.path.splitext(os.path.basename(self.paths[-1]))[0]
        run = self.migrate(store, [bundle], name, out, ["--chain", "progressive", "--workers", str(self.rng.randint(1, 3))])
        if digest is None:
            return
        self.counts["chains compared"] += 1
        if run.verdict != "migrated":
            self.problem(f"step by step it is migrated, progressive {run.verdict}: {run.why()}")
        elif judge.digest(out, self.paths[-1]) != digest:
            self.problem(f"progressive gives other objects than step by step; path {(run.result or {}).get('path')}")

    def place(self, name, file="store.sqlite"):
        os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        return os.path.join(self.folder, name, file) if file else os.path.join(self.folder, name)


def counts_of(spec):
    """Tells whether a difference is in a derived count. `check` has judged those by the destination's own
    pairs, and `lightweight` by the source's value, which is another where members stay behind."""
    model = judge.model(spec)
    derived = {(name, p) for name in model.entities for p, (_, prop) in model.properties(name).items()
               if prop.kind == "attribute" and prop.derived}

    def excuse(difference):
        words = difference.split(": ")
        where = words[1].split(" ")
        return words[0] == "value" and len(where) == 3 and (where[0], where[2]) in derived
    return excuse


def findings(run):
    """What `godwit verify` says that is no note."""
    found = [line.get("findings") for line in run.lines if isinstance(line, dict) and isinstance(line.get("findings"), list)]
    return [f for f in (found[-1] if found else []) if f.get("kind") != "note"]


def allowed_verdicts(wanted):
    """What the tool may answer, by what `judge.infer` says. Where Apple says nothing it may refuse."""
    if wanted["verdict"] == "same-model":
        return {"same-model"}
    documented = {r.by for r in wanted["refusals"] if r.certainty == "documented"}
    words = {"model": "needs-mapping", "data": "refused"}
    allowed = {words[r.by] for r in wanted["refusals"]} | (set() if documented else {"migrated"})
    if any(r.reason == "to-many-to-one" for r in wanted["refusals"]):      # the rows decide
        allowed |= {"refused"}
    if not wanted["shares an entity"]:      # a store of another application
        allowed |= {"refused"}
    if wanted["inherited constraint"]:      # its index holds the rows of every entity of the table
        allowed |= {"refused"}
    return allowed


def trial(kind, seed, number, keep, only_chains=False):
    """Runs one trial in this process; gives its counts, and what is wrong."""
    began = time.monotonic()
    folder = tempfile.mkdtemp(prefix=f"{number}-", dir=os.environ.get("GODWIT_TRIAL_FOLDER"))
    here = kind(seed, number, folder, only_chains)
    judge.lightweight.LIMIT = 10_000    # every difference is looked at
    try:
        here.run()
    except Exception as error:      # one broken trial must not hide the others
        here.problem(f"the trial itself failed: {type(error).__name__}: {error} at line {error.__traceback__.tb_next.tb_lineno}"
                     if error.__traceback__.tb_next else repr(error))
    kept = None
    if here.problems:
        kept = os.path.join(keep, f"{seed}-{number}")
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(folder, kept, symlinks=True)
        with open(os.path.join(kept, "problems.txt"), "w") as file:
            lines = [f"{kind.script} {'--chains ' if only_chains else ''}--seed {seed} --only {number}", "", *here.problems, "", *map(str, getattr(here, "changes", [])),
                     "", *here.commands]
            file.write("\n".join(lines).replace(folder, kept) + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    return number, here.counts, here.problems, kept, time.monotonic() - began


def report(done, counts, failed, elapsed, jobs):
    print(ground.table(sorted(counts.items()), ("what", "number")))
    print(f"{done} random pairs and chains, {failed} failed, {elapsed:.0f} s with {jobs} jobs ({done / max(elapsed, .001):.1f} a second)")


def main(kind=Trial, text=__doc__):
    parser = argparse.ArgumentParser(prog=kind.script, description=text)
    parser.add_argument("--pairs", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--chains", action="store_true", help="chains of three to five versions only, no pairs")
    parser.add_argument("--only", nargs="+", type=int, metavar="NUMBER", help="these trials of the seed")
    parser.add_argument("--keep", default=os.path.join(ground.ROOT, ".build", os.path.basename(kind.script)), metavar="FOLDER",
                        help="where failed trials are kept")
    options = parser.parse_args()
    ground.skip_unless_shared("random models")
    os.environ |= {"GODWIT": ground.godwit(), "GODWIT_FIXTURES": ground.fixtures(), "GODWIT_TRIAL": ground.trial()}     # built once
    numbers = options.only or range(options.pairs)
    counts, failed, began = collections.Counter(), 0, time.monotonic()
    with ground.fast_workspace("models") as folder:
        os.environ["GODWIT_TRIAL_FOLDER"] = folder
        # New processes now and then: what they have read of models stays in memory. A pool that
        # renews its processes by itself has been seen to stop for ever.
        for start in range(0, len(numbers), BATCH):
            with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
                waiting = [pool.submit(trial, kind, options.seed, n, options.keep, options.chains)
                           for n in numbers[start:start + BATCH]]
                for future in concurrent.futures.as_completed(waiting):
                    number, found, problems, kept, _ = future.result()
                    counts.update(found)
                    if problems:
                        failed += 1
                        print(f"{number}: {problems[0][:600]}\n  kept in {kept}", flush=True)
            ground.say(f"{start + len(waiting)} of {len(numbers)}, {failed} failed, {time.monotonic() - began:.0f} s")
    report(len(numbers), counts, failed, time.monotonic() - began, options.jobs)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
