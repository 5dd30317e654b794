"""A full disk: the run stops with 75 and keeps what it has; with room again it finishes."""
import os
import signal
import subprocess
import sys
import time

from . import crashes, ground, judge, processes, tool

ROWS = 20_000


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
        done = subprocess.run(["mount", "-o", f"remount,size={size}", self.folder],
                              stderr=subprocess.DEVNULL)
        return done.returncode == 0

    def leave_nothing(self):
        """Shrinks to what is in use. Refused while somebody still writes, so it tries again."""
        for _ in range(50):
            found = os.statvfs(self.folder)
            if self.resize((found.f_blocks - found.f_bfree) * found.f_frsize):
                return True
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", self.folder], check=False)


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
    label = "filled while running"
    with Volume(folder, 1 << 30) as volume:
        out = os.path.join(folder, "out.sqlite")
        command = subject.command(subject.store, out)
        process = tool.start(command)
        began = time.monotonic()
        while process.poll() is None and time.monotonic() - began < 60:
            if crashes.checkpoints(out + ".godwit"):
                break
            time.sleep(0.001)
        # Held still meanwhile, or a fast run would be over before the volume is full.
        held = processes.handles([process.pid] + processes.descendants(process.pid))
        for handle in held:
            handle.send(signal.SIGSTOP)
        full = volume.leave_nothing()
        kept = crashes.checkpoints(out + ".godwit")
        for handle in held:
            handle.send(signal.SIGCONT)
            handle.close()
        run = tool.finish(process, began, 120)
        if not full:
            return [f"{label}: the volume could not be made small"]
        if run.exit == 0:
            return [f"{label}: the run had finished before the volume was full"]
        problems = check_stop(run, label)
        volume.resize(1 << 30)
        problems += finished(tool.run(command), out, reference, label)
        # Where the run directory is gone after a success, the digest alone speaks.
        again = crashes.redone(kept, crashes.checkpoints(out + ".godwit"))
        if again:
            problems.append(f"{label}: {len(again)} of {len(kept)} finished checkpoints were written again")
        return problems


def finished(run, out, reference, label):
    problems = [f"{label}, rerun: {p}" for p in tool.contract_problems(run)]
    if run.exit != 0:
        return problems + [f"{label}, rerun: {run.why()}"]
    if judge.digest(out) != reference:
        problems.append(f"{label}, rerun: the logical digest differs from the undisturbed run's")
    return problems


def main():
    if os.geteuid() != 0:
        ground.skip("full disk", "mounting a tmpfs needs root")
    problems = []
    with ground.workspace("disk") as folder:
        subject = crashes.Subject.generated(folder, ROWS, seed=7, shard_bytes=64 << 10)
        reference, _ = subject.reference(os.path.join(folder, "reference"))
        try:
            problems += from_the_start(subject, os.path.join(folder, "small"), reference)
            problems += in_the_middle(subject, os.path.join(folder, "filled"), reference)
        except PermissionError as error:
            ground.skip("full disk", f"no tmpfs can be mounted here: {error}")
    for text in problems:
        print(text)
    print(f"full disk: {'FAILED' if problems else 'stops with 75, and finishes when there is room'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
