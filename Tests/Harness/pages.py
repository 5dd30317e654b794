"""The report's page in headless Chromium: no errors on its console, a table that fills, and how long it takes,
for 3, 600 and 40 000 stores; screenshots of the light and the dark theme, and of a phone.

A real run of a few stores is the start; its ledger is then filled with as many attempts as are wanted.
"""
import argparse
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

from . import ground, tool

COUNTS = (3, 600, 40_000)
MOST_BYTES, MOST_SECONDS = 10_000_000, 2.0
FAILURES = (("refused", 134_110, "validation", "Recipe.name with Z_PK 12 has no value, and needs one."),
            ("failed", None, "damaged", "page 7 is not as SQLite writes it."),
            ("pending", None, "in-use", "another process has it open."))


def chromium(*words):
    """(standard output, standard error, seconds) of a start of the browser."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", *words]
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    return (done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"),
            time.monotonic() - began)


def make_run(folder):
    """A pipeline that has migrated three stores."""
    ground.make_fleet(os.path.join(folder, "stores"), 3, 300, 1, "mixed")
    pipeline = os.path.join(folder, "pipeline.yaml")
    with open(pipeline, "w", encoding="utf-8") as file:
        file.write(f"name: recipes-2.0\nstores: {{ roots: stores }}\nmodels: {ground.MODELS}\n")
    run = tool.run([ground.godwit(), "run", pipeline, "--json"], timeout=600)
    if run.exit:
        sys.exit(f"the run failed: {run.stderr}")
    return pipeline


def fill(ledger, count, seed):
    """Adds attempts of made-up stores to the last run, until it has `count`."""
    rng = random.Random(seed)
    database = sqlite3.connect(ledger)
    run, began = database.execute("SELECT id, started FROM runs ORDER BY id DESC LIMIT 1").fetchone()
    first = database.execute("SELECT max(id) FROM stores").fetchone()[0] + 1
    model = database.execute("SELECT losses, source, destination, stages FROM attempts WHERE verdict = 'migrated' "
                             "LIMIT 1").fetchone()
    lanes, counts = [began] * 8, {}
    for number in range(count - 3):
        path = f"/srv/recipes/{number % 97:02}/user-{number:06}/Recipes.sqlite"
        size = int(rng.lognormvariate(12, 1.2))
        database.execute("INSERT INTO stores (id, path, bytes) VALUES (?, ?, ?)", (first + number, path, size))
        failure = rng.choice(FAILURES) if rng.random() < 0.03 else None
        verdict, code, reason, message = failure or ("migrated", None, None, None)
        reasons = [{"reason": reason, "message": f"{path}: {message}"}] if failure else []
        lane = min(range(8), key=lanes.__getitem__)
        ended = lanes[lane] + 0.004 + size / 4e7
        database.execute(
            "INSERT INTO attempts (run, store, started, ended, verdict, code, reason, reasons, losses, source, "
            "destination, rows, source_bytes, stages, lane) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (run, first + number, lanes[lane], ended, verdict, code, reason, json.dumps(reasons),
             "[]" if failure else model[0], model[1], model[2], size // 90, size, model[3], lane))
        lanes[lane] = ended
        counts[verdict] = counts.get(verdict, 0) + 1
    database.execute("UPDATE runs SET exit = 3, ended = ?, found = ?, migrated = migrated + ?, refused = ?, failed = ?, "
                     "pending = ? WHERE id = ?", (max(lanes), count, counts.get("migrated", 0), counts.get("refused", 0),
                                                  counts.get("failed", 0), counts.get("pending", 0), run))
    database.commit()
    database.close()


def judge(page, count):
    """What is wrong with a page, and how long the browser took above an empty one."""
    problems = []
    with open(page, encoding="utf-8") as file:
        text = file.read()
    if len(text.encode()) > MOST_BYTES:
        problems.append(f"{len(text.encode())} bytes")
    addresses = {a for a in re.findall(r"https?://[^\s\"'<]+", text) if not a.startswith("http://www.w3.org/")}
    problems += [f"an address of the network: {a}" for a in addresses]
    empty = chromium("--dump-dom", "about:blank")[2]
    dom, log, seconds = chromium("--dump-dom", f"file://{page}")
    problems += [line for line in log.splitlines() if "CONSOLE" in line]
    rows = len(re.findall(r"<tr><td><code>", dom.split('id="stores"')[-1]))
    if rows != min(count, 100):
        problems.append(f"the table has {rows} rows")
    if seconds - empty > MOST_SECONDS:
        problems.append(f"it opens in {seconds - empty:.1f} s")
    return problems, seconds - empty


def screenshots(page, folder):
    """Light, dark and phone."""
    os.makedirs(folder, exist_ok=True)
    for name, words in (("report-light", ("--window-size=1280,1500",)),
                        ("report-dark", ("--window-size=1280,1500", "--blink-settings=preferredColorScheme=0")),
                        ("report-phone", ("--window-size=500,1200",))):
        chromium(f"--screenshot={os.path.join(folder, name)}.png", "--hide-scrollbars", *words, f"file://{page}")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/pages", description=__doc__)
    parser.add_argument("--counts", nargs="+", type=int, default=COUNTS)
    parser.add_argument("--screenshots", metavar="DIR", help="of the page of 600 stores")
    options = parser.parse_args(arguments)
    if not any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")):
        ground.skip("pages", "there is no Chromium here")
    failed = 0
    for count in options.counts:
        with tempfile.TemporaryDirectory(prefix="pages-", dir=os.environ.get("GODWIT_TRIAL_FOLDER")) as folder:
            pipeline = make_run(folder)
            if count > 3:
                fill(os.path.join(folder, "ledger.sqlite"), count, 1)
            page, began = os.path.join(folder, "report.html"), time.monotonic()
            run = tool.run([ground.godwit(), "report", pipeline, "--format", "html", "--output", page], timeout=120)
            written = time.monotonic() - began
            problems, seconds = judge(page, count) if run.exit == 0 else ([run.stderr], 0)
            if options.screenshots and count == 600:
                screenshots(page, options.screenshots)
            print(f"{count} stores: {os.path.getsize(page) / 1e6:.2f} MB, written in {written:.1f} s, opens in "
                  f"{max(0, seconds):.1f} s, {len(problems)} problems")
            for problem in problems:
                print(f"PROBLEM {problem}")
            failed += bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
