"""Processes as the kernel sees them: who descends from a run, and ending them without mistaking
a reused number for one of ours."""
import os
import signal
import time


def _status(pid):
    """(parent, start time, state), or None when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return None
    fields = text[text.rindex(")") + 2:].split()
    return int(fields[1]), int(fields[19]), fields[0]


def descendants(pid):
    """Handles of every process below `pid`, zombies left out."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            found = _status(int(name))
            if found and found[2] != "Z":
                parents.setdefault(found[0], []).append(int(name))
    result, waiting = [], [pid]
    while waiting:
        for child in parents.get(waiting.pop(), []):
            waiting.append(child)
            result.append(child)
    return result


class Handle:
    """A process held by a descriptor: a signal can never reach another one of the same number."""

    def __init__(self, pid):
        self.pid = pid
        self.descriptor = os.pidfd_open(pid)
        found = _status(pid)
        if found is None:
            os.close(self.descriptor)
            raise ProcessLookupError(pid)
        self.started = found[1]

    def send(self, number):
        """True when the process was there to get it."""
        try:
            signal.pidfd_send_signal(self.descriptor, number)
            return True
        except ProcessLookupError:
            return False

    def alive(self):
        found = _status(self.pid)
        return found is not None and found[1] == self.started and found[2] not in "ZX"

    def close(self):
        os.close(self.descriptor)


def handles(pids):
    found = []
    for pid in pids:
        try:
            found.append(Handle(pid))
        except OSError:
            pass
    return found


def wait_gone(held, seconds):
    """Those still alive after `seconds`."""
    until = time.monotonic() + seconds
    while True:
        left = [h for h in held if h.alive()]
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.01)


def peak_bytes(pid):
    """Peak resident memory so far (VmHWM), or None when the process is gone."""
    try:
        with open(f"/proc/{pid}/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) << 10
    except OSError:
        return None
    return None
