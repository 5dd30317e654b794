"""The benchmark's history: a line of JSON for each commit and machine, and its picture."""
import html
import json
import math
import os
import subprocess

from . import ground

FILE = os.path.join(ground.ROOT, "Benchmarks", "history.jsonl")
COLORS = ("#3b7dd8", "#d1495b", "#2e9e6b", "#b8860b", "#8a5fc7", "#d2691e", "#2a9d9d", "#c2549d")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 1000, 480, 70, 280, 56, 96
TICKS = (0.05, 0.1, 0.2, 0.35, 0.5, 1, 2, 5, 10, 20)


def machine():
    """The processor and how many of it."""
    name = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    return f"{name}, {os.cpu_count()} processors"


def commit():
    """(hash, date) of the sources; `+` marks changes that are not committed."""
    def git(*words):
        done = subprocess.run(["git", "-C", ground.ROOT, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return done.stdout.decode().strip()
    name = git("rev-parse", "--short=10", "HEAD")
    if not name:
        return "unknown", ""
    changed = [line for line in git("status", "--porcelain", "-uall").splitlines() if not line.endswith("Benchmarks/history.jsonl")]
    return name + ("+" if changed else ""), git("show", "-s", "--format=%cI", "HEAD")


def load(path=FILE):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def recorded(lines, found):
    """The lines with an entry added: its results join those of the same commit and machine."""
    for place, line in enumerate(lines):
        if (line["commit"], line["machine"]) == (found["commit"], found["machine"]):
            joined = line | {"results": line["results"] | found["results"]}
            return lines[:place] + [joined] + lines[place + 1:]
    return lines + [found]


def record(results, path=FILE):
    """`results`: {what was run: figures of Godwit with `ratio`}. Gives the commit."""
    name, date = commit()
    entry = {"commit": name, "date": date, "machine": machine(), "results": results}
    os.makedirs(os.path.dirname(path), exist_ok=True)
    text = "".join(json.dumps(line, sort_keys=True) + "\n" for line in recorded(load(path), entry))
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)
    return name


def result(contender):
    """What the history keeps of Godwit's figures."""
    kept = {"seconds": contender["seconds"]["median"], "processorSeconds": contender["processorSeconds"]["median"],
            "ratio": contender["ratio"], "processorRatio": contender["processorRatio"]}
    return {key: round(value, 4) for key, value in kept.items()}


def series(lines):
    """(commits, {name: [(place, ratio)]}) of the machine of the last line."""
    own = [line for line in lines if line["machine"] == lines[-1]["machine"]]
    found = {}
    for place, line in enumerate(own):
        for name, figures in line["results"].items():
            found.setdefault(name, []).append((place, figures["ratio"]))
    return [line["commit"] for line in own], dict(sorted(found.items()))


def picture(lines):
    """An SVG: ratios over commits, on a logarithmic scale."""
    commits, found = series(lines)
    ratios = [r for points in found.values() for _, r in points] + [1]
    low = max((t for t in TICKS if t <= min(ratios)), default=TICKS[0])
    high = min((t for t in TICKS if t >= max(ratios)), default=TICKS[-1])
    low, high = (low, high) if low < high else (0.5, 2)

    def across(place):
        return LEFT + (WIDTH - LEFT - RIGHT) * (place + 0.5) / len(commits)

    def up(ratio):
        share = (math.log(min(max(ratio, low), high)) - math.log(low)) / (math.log(high) - math.log(low))
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="title">',
           '<title id="title">Time of a migration by Godwit, in times of a SQL script</title>', STYLE,
           f'<rect class="back" width="{WIDTH}" height="{HEIGHT}"/>',
           f'<text class="head" x="{LEFT}" y="24">Time of a migration by Godwit, in times of a SQL script</text>',
           f'<text x="{LEFT}" y="42">{html.escape(lines[-1]["machine"])}</text>']
    for tick in (t for t in TICKS if low <= t <= high):
        y = up(tick)
        out.append(f'<line class="{"one" if tick == 1 else "grid"}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    step = max(1, math.ceil(len(commits) / 24))
    for place, name in enumerate(commits):
        if place % step == 0:
            x, y = across(place), HEIGHT - BOTTOM + 16
            out.append(f'<text class="small" x="{x:.1f}" y="{y}" text-anchor="end" '
                       f'transform="rotate(-40 {x:.1f} {y})">{html.escape(name)}</text>')
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out.append(f'<text x="18" y="{middle}" text-anchor="middle" transform="rotate(-90 18 {middle})">times the script</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">commit</text>')
    spacing = min(20, (HEIGHT - TOP - 16) / len(found))
    for number, (name, points) in enumerate(found.items()):
        color, dashes = COLORS[number % len(COLORS)], ("", ' stroke-dasharray="6 4"')[number // len(COLORS) % 2]
        path = " ".join(f"{across(place):.1f},{up(ratio):.1f}" for place, ratio in points)
        out.append(f'<polyline fill="none" stroke="{color}" stroke-width="2"{dashes} points="{path}"/>')
        out += [f'<circle cx="{across(place):.1f}" cy="{up(ratio):.1f}" r="3.5" fill="{color}"/>' for place, ratio in points]
        x, y = WIDTH - RIGHT + 16, TOP + 8 + spacing * number
        out.append(f'<line stroke="{color}" stroke-width="3"{dashes} x1="{x}" x2="{x + 20}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(f'<text x="{x + 28}" y="{y + 4:.1f}">{html.escape(name)}: {points[-1][1]:.2f}</text>')
    return "\n".join(out + ["</svg>", ""])


STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #24292f }
.head { font-weight: 600; font-size: 16px } .small { font-size: 11px }
.back { fill: #ffffff } .grid { stroke: #d8dee4 } .one { stroke: #57606a; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .back { fill: #0d1117 } .grid { stroke: #30363d } .one { stroke: #9aa4af }
}
</style>"""


def draw(path):
    lines = load()
    if not lines:
        return f"{FILE} has no line yet; --record writes them"
    with open(path, "w", encoding="utf-8") as file:
        file.write(picture(lines))
    return None
