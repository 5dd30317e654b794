"""Pages of the documentation site in headless Chromium: they have text, and no errors on the console."""
import argparse
import functools
import http.server
import os
import re
import sys
import threading

from . import pages

PAGES = ("", "firstmigration", "commands", "expressions", "outcomes", "pipelinefile", "entitymigrationpolicy")


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that says nothing of each request."""

    def log_message(self, *_):
        pass


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/docs --screenshots", description=__doc__)
    parser.add_argument("site")
    parser.add_argument("--output", required=True, metavar="DIR")
    parser.add_argument("--pages", nargs="+", default=PAGES)
    parser.add_argument("--size", default="1280,1600")
    options = parser.parse_args(arguments)
    os.makedirs(options.output, exist_ok=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=options.site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    failed = 0
    for name in options.pages:
        url = f"http://127.0.0.1:{server.server_port}/documentation/godwit/{name}"
        picture = os.path.join(options.output, (name or "godwit") + ".png")
        words = (f"--window-size={options.size}", "--virtual-time-budget=8000", "--hide-scrollbars")
        _, said, _ = pages.chromium(*words, f"--screenshot={os.path.abspath(picture)}", url)
        dom, more, _ = pages.chromium(*words, "--dump-dom", url)
        errors = re.findall(r"CONSOLE.*?\"(.*?)\", source", said + more)
        text = re.sub(r"<[^>]+>", " ", re.sub(r"(?s)<(script|style).*?</\1>", " ", dom))
        problems = errors + (["the page is empty"] if len(text.split()) < 60 else [])
        failed += bool(problems)
        print(f"{name or 'godwit'}: {len(text.split())} words, {picture}" + "".join(f"\n  {p}" for p in problems[:5]))
    server.shutdown()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
