"""Running `godwit` as a person would, and reading what it says."""
import dataclasses
import json
import os
import re
import resource
import signal
import subprocess
import time

from . import ground

# Contract §6. A code outside this set is a failure of the tool whatever happened.
EXIT_CODES = {0, 1, 3, 4, 11, 64, 65, 69, 73, 74, 75, 78}
VERDICTS = {"migrated", "same-model", "refused", "needs-mapping", "quarantined", "pending", "failed"}
EXIT_OF_VERDICT = {"migrated": 0, "same-model": 0, "refused": 65, "needs-mapping": 65, "pending": 75}

# What a crash of a worker looks like from outside: the coordinator names the signal, or the
# Swift runtime says it on the worker's standard error.
CRASH = re.compile(
    r"Fatal error|Program crashed|Swift runtime failure|Illegal instruction|Segmentation fault"
    r"|stack overflow|\bSIG(ILL|TRAP|SEGV|ABRT|BUS|FPE)\b|\bsignal (4|5|6|7|8|11)\b", re.IGNORECASE)


@dataclasses.dataclass
class Run:
    """One finished run."""
    exit: int                   # negative: the signal that ended it
    lines: list                 # the JSON objects on standard output
    stray: list                 # lines of standard output that are no JSON
    stderr: str
    seconds: float
    hung: bool = False

    @property
    def result(self):
        """The `result` line, or None."""
        found = [x for x in self.lines if isinstance(x, dict) and x.get("event") == "result"]
        return found[-1] if found else None

    @property
    def verdict(self):
        return (self.result or {}).get("verdict")

    @property
    def reasons(self):
        found = (self.result or {}).get("reasons")
        return [r for r in found if isinstance(r, dict)] if isinstance(found, list) else []

    @property
    def messages(self):
        """What the result line tells a person."""
        texts = [(self.result or {}).get("message")] + [r.get("message") for r in self.reasons]
        return [t for t in texts if isinstance(t, str) and t.strip()]

    def why(self, limit=300):
        """One line for a report of failures."""
        text = "; ".join(self.messages) or self.stderr.strip().replace("\n", " | ") or "no message"
        return f"exit {self.exit}, {self.verdict}: {text[:limit]}"


def contract_problems(run, output_expected=None):
    """What any run must keep, whatever its input: [problem]."""
    found = []
    if run.hung:
        return [f"hung: killed after {run.seconds:.0f} s"]
    if run.exit < 0:
        return [f"ended by signal {-run.exit}: {run.stderr.strip()[-300:]}"]
    if CRASH.search(run.stderr) or any(CRASH.search(m) for m in run.messages):
        found.append(f"a process crashed: {run.why()}")
    if run.exit not in EXIT_CODES:
        found.append(f"exit code {run.exit} is not in the contract")
    if run.stray:
        found.append(f"standard output has {len(run.stray)} lines that are no JSON")
    if run.result is None:
        found.append(f"no result line (exit {run.exit}): {run.stderr.strip()[-300:]}")
        return found
    if run.result is not run.lines[-1]:
        found.append("the result line is not the last one")
    if run.verdict not in VERDICTS:
        found.append(f"unknown verdict {run.verdict!r}")
    wanted = EXIT_OF_VERDICT.get(run.verdict)
    if wanted is not None and run.exit != wanted:
        found.append(f"verdict {run.verdict} with exit {run.exit}, expected {wanted}")
    if run.verdict == "failed" and run.exit == 0:
        found.append("verdict failed with exit 0")
    if run.exit != 0 and not run.messages:
        found.append(f"exit {run.exit} without a message in the result line")
    return found


def migrate_command(store, models=(), to=None, output=None, workers=None, shard_bytes=None,
                    extra=()):
    command = [ground.godwit(), "migrate", store]
    for model in models:
        command += ["--models", model]
    for name, value in (("--to", to), ("--output", output), ("--workers", workers),
                        ("--shard-bytes", shard_bytes)):
        if value is not None:
            command += [name, str(value)]
    return command + ["--json", *extra]


def environment(**more):
    """The caller's environment; the backtracer off, which takes seconds and looks like a hang."""
    found = {k: v for k, v in os.environ.items() if not k.startswith("GODWIT_KILL")}
    return found | {"SWIFT_BACKTRACE": "enable=no"} | {k: str(v) for k, v in more.items()}


def start(command, memory=None, env=None, stdout=subprocess.PIPE, stderr=subprocess.PIPE):
    """Starts a run as the head of its own process group."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
                            start_new_session=True, preexec_fn=limit, env=env or environment())


def finish(process, began, timeout):
    """Waits; at the timeout ends the group that `start` made."""
    hung = False
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        hung = True
        end_group(process)
        out, err = process.communicate()
    return parsed(process.returncode, out, err, time.monotonic() - began, hung)


def end_group(process):
    """Ends every process of the group that we started ourselves."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(command, timeout=600, memory=None, env=None):
    began = time.monotonic()
    return finish(start(command, memory, env), began, timeout)


def parsed(code, out, err, seconds, hung=False):
    lines, stray = [], []
    for line in out.decode("utf-8", "replace").splitlines():
        if not line.strip():
            continue
        try:
            lines.append(json.loads(line))
        except ValueError:
            stray.append(line)
    return Run(code, lines, stray, err.decode("utf-8", "replace"), seconds, hung)
