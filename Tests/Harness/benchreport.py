"""The benchmark's figures: medians of ratios within a round, tables, JSON, and goals."""
import statistics

from . import ground

# What is aimed at: a migration's contender against a rival, in seconds or in processor seconds, at
# most so many times, for stores of so many megabytes. Seconds depend on the machine and on who else
# uses it, so goals are printed and judged only on demand.
LARGE, ANY = (1000, 1_000_000), (0, 1_000_000)
GOALS = [
    ("a", "godwit", ("a", "script"), "seconds", 0.5, (0, 999)),
    ("a", "godwit", ("a", "script"), "seconds", 0.35, LARGE),
    ("a", "godwit", ("a", "alter"), "seconds", 1.1, LARGE),
    ("b", "godwit", ("b", "script"), "seconds", 0.35, LARGE),
    ("c", "godwit", ("c", "cp"), "seconds", 1.6, LARGE),
    ("d", "godwit", ("a", "godwit"), "seconds", 1.25, ANY),
    ("d", "godwit", ("d", "copies"), "processor", 1.3, ANY),
]
# Objects a second and core by a policy that sets three attributes, copy and link together.
POLICY_GOAL = 400_000


def spread(values):
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def ratio(samples, rivals, measure="seconds"):
    """The median of the rounds' ratios: a machine whose speed drifts drifts for both."""
    return statistics.median(getattr(a, measure) / getattr(b, measure) for a, b in zip(samples, rivals, strict=True))


def stages(results):
    """Medians of Godwit's stages; processor seconds where it reports them."""
    found = []
    for first in results[0]["stages"]:
        same = [s for r in results for s in r["stages"] if s["stage"] == first["stage"]]
        stage = {k: first.get(k, 0) for k in ("stage", "units", "rows", "bytes")}
        stage["seconds"] = statistics.median(s["seconds"] for s in same)
        if all("processorSeconds" in s for s in same):
            stage["processorSeconds"] = statistics.median(s["processorSeconds"] for s in same)
        found.append(stage)
    return found


def policy_rate(results):
    """Objects a second and core, of the stages that run the policy's hooks."""
    def rate(result):
        by_name = {s["stage"]: s for s in result["stages"]}
        return by_name["copy"]["rows"] / (by_name["copy"]["processorSeconds"] + by_name["link"]["processorSeconds"])
    return statistics.median(rate(r) for r in results)


def contenders(samples):
    """{name: figures}, with ratios to the script where it took part."""
    found = {}
    for name, own in samples.items():
        found[name] = {"seconds": spread([s.seconds for s in own]), "processorSeconds": spread([s.processor for s in own])}
        if "script" in samples:
            found[name]["ratio"] = ratio(own, samples["script"])
            found[name]["processorRatio"] = ratio(own, samples["script"], "processor")
    return found


def figures(migration, samples):
    """What JSON says of a migration."""
    results = [s.result for s in samples["godwit"]]
    return {"title": migration.title, "rows": results[0]["rows"], "contenders": contenders(samples), "stages": stages(results),
            "peakRSS": {kind: max(r["peakRSS"][kind] for r in results) for kind in ("coordinator", "worker")}}


def goals(samples, megabytes):
    """[{goal, found, limit, met}] of the migrations that were run."""
    found = []
    for name, contender, rival, measure, limit, (least, most) in GOALS:
        own, others = (samples.get(m, {}).get(c) for m, c in ((name, contender), rival))
        if own and others and least <= megabytes <= most:
            value = ratio(own, others, measure)
            beside = rival[1] if rival[0] == name else f"{rival[1]} at {rival[0]}"
            text = f"{name}: {contender} to {beside}" + (" by processor" if measure == "processor" else "")
            found.append({"goal": text, "found": round(value, 3), "limit": f"at most {limit}", "met": value <= limit})
    if "e" in samples:
        value = policy_rate([s.result for s in samples["e"]["godwit"]])
        found.append({"goal": "e: objects a second and core", "found": round(value), "limit": f"at least {POLICY_GOAL}",
                      "met": value >= POLICY_GOAL})
    return found


def print_contenders(found):
    rows = []
    for name, own in found.items():
        seconds = [f"{own['seconds'][k]:.2f}" for k in ("min", "median", "max")]
        rows.append((name, *seconds, *(f"{own[k]:.2f}" if k in own else "" for k in ("ratio", "processorRatio")),
                     f"{own['processorSeconds']['median']:.2f}"))
    print(ground.table(rows, ("", "min s", "median s", "max s", "to script", "by processor", "processor s")))


def print_migration(name, found):
    print(f"\n{name}: {found['title']}, {found['rows']} rows")
    print_contenders(found["contenders"])
    rows = []
    for stage in found["stages"]:
        rate = f"{stage['rows'] / stage['seconds']:.0f}" if stage["rows"] and stage["seconds"] else ""
        processor = f"{stage['processorSeconds']:.3f}" if "processorSeconds" in stage else ""
        rows.append((stage["stage"], stage["units"], f"{stage['seconds']:.3f}", processor, rate))
    print(ground.table(rows, ("stage", "units", "median s", "processor s", "rows/s")))
    peaks = ", ".join(f"{kind} {size / 2 ** 20:.0f} MiB" for kind, size in found["peakRSS"].items())
    print(f"peak memory: {peaks}")


def print_goals(found):
    if found:
        rows = [(g["goal"], g["found"], g["limit"], "met" if g["met"] else "missed") for g in found]
        print("\n" + ground.table(rows, ("goal", "found", "limit", "")))


def exit_code(found, demanded):
    """Goals decide only where that was asked for."""
    return 1 if demanded and not all(g["met"] for g in found) else 0
