"""A full disk: the run stops with 75 and keeps what it has; with room again it finishes."""
import os
import subprocess
import sys
import time

from . import crashes, ground, judge, tool

ROWS = 40_000


class Volume:
    """A tmpfs of our own, gone at the end."""

    def __init__(self, folder, size):
        self.folder = folder
        os.makedirs(folder)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "godwit-trial", folder],
                              stderr=subprocess.PIPE)
        if done.returncode:
            raise PermissionError(done.stderr.decode().strip())

    def resize(self, size):
        subprocess.run(["mount", "-o", f"remount,size={size}", self.folder], check=True)

    def free(self):
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", self.folder], check=False)


def fill(volume, keep=0):
    """Leaves `keep` bytes of the volume; gives the file that took the rest."""
    name = os.path.join(volume.folder, "filler")
    with open(name, "wb", buffering=0) as file:
        block = bytes(1 << 16)
        try:
            while volume.free() > keep:
                file.write(block[:max(4096, min(len(block), volume.free() - keep))])
        except OSError:
            pass
    return name


def check_stop(run, label):
    problems = tool.contract_problems(run)
    if run.exit != 75:
        problems.append(f"{run.why()}, expected exit 75")
    return [f"{label}: {p}" for p in problems]


def from_the_start(subject, folder, reference):
    """Too small from the beginning: nothing can be done before there is room."""
    with Volume(folder, 64 << 10) as volume:
        out = os.path.join(folder, "out.sqlite")
        command = subject.command(subject.store, out)
        problems = check_stop(tool.run(command), "no room at all")
        volume.resize(1 << 30)
        return problems + finished(tool.run(command), out, reference, "no room at all")


def in_the_middle(subject, folder, reference):
    """The volume fills up while shards are being written."""
    problems = []
    with Volume(folder, 1 << 30) as volume:
        out = os.path.join(folder, "out.sqlite")
        command = subject.command(subject.store, out)
        process = tool.start(command)
        began = time.monotonic()
        while process.poll() is None and time.monotonic() - began < 60:
            if crashes.finished_units(out + ".godwit"):
                break
            time.sleep(0.002)
        filler = fill(volume)
        run = tool.finish(process, began, 120)
        kept = set(crashes.finished_units(out + ".godwit"))
        if run.exit == 0:
            return ["filled while running: the run had finished before the volume was full"]
        problems += check_stop(run, "filled while running")
        os.remove(filler)
        problems += finished(tool.run(command), out, reference, "filled while running")
        redone = [u for u, n in crashes.finished_units(out + ".godwit").items() if u in kept and n > 1]
        if redone:
            problems.append(f"filled while running: {len(redone)} of {len(kept)} finished units were done again")
    return problems


def finished(run, out, reference, label):
    problems = [f"{label}, rerun: {p}" for p in tool.contract_problems(run)]
    if run.exit != 0:
        return problems + [f"{label}, rerun: {run.why()}"]
    if judge.digest(out) != reference:
        problems.append(f"{label}, rerun: the logical digest differs from the undisturbed run's")
    return problems


def main():
    ground.skip_unless_shared("full disk")
    if os.geteuid() != 0:
        print("full disk: skipped, since mounting a tmpfs needs root", flush=True)
        return 0
    problems = []
    with ground.workspace("disk") as folder:
        subject = crashes.Subject.generated(folder, ROWS, seed=7, shard_bytes=64 << 10)
        reference, _ = subject.reference(os.path.join(folder, "reference"))
        try:
            problems += from_the_start(subject, os.path.join(folder, "small"), reference)
            problems += in_the_middle(subject, os.path.join(folder, "filled"), reference)
        except PermissionError as error:
            print(f"full disk: skipped, since no tmpfs can be mounted here: {error}", flush=True)
            return 0
    for text in problems:
        print(text)
    print(f"full disk: {'FAILED' if problems else 'stops with 75, and finishes when there is room'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
