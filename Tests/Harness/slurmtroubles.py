"""What befalls a Slurm cluster, made on demand. Each gives True when it has struck."""
import os
import signal
import subprocess
import time

from . import ground, processes


def slurm(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode().split()


def running():
    """The nodes that have tasks of ours."""
    return slurm("squeue", "-h", "-t", "running", "-o", "%N")


def mark_down(node):
    """Tells the controller at once what it would find out in 15 s."""
    slurm("scontrol", "update", f"nodename={node}", "state=down", "reason=trial")


def resume(box, node):
    box.start(node)
    slurm("scontrol", "update", f"nodename={node}", "state=resume")


def some_node(rng):
    nodes = running()
    return rng.choice(nodes) if nodes else None


def crash(box, rng, _place, over):
    """A node loses power, and comes back."""
    node = some_node(rng)
    if not node:
        return False
    box.crash(node)
    if rng.random() < 0.8:
        mark_down(node)
    over.wait(rng.uniform(0.2, 2))
    resume(box, node)
    return True


def split_brain(box, rng, _place, over):
    """slurmd dies and its tasks go on; the controller starts them again elsewhere."""
    node = some_node(rng)
    if not node:
        return False
    box.stop(node)
    mark_down(node)
    over.wait(rng.uniform(1, 8))
    resume(box, node)
    return True


def frozen(box, rng, _place, over):
    """As a split brain, and the first attempt stands still until its leases have run out."""
    node = some_node(rng)
    first = box.processes.get(node)
    if first is None:
        return False
    pids = [pid for pid in processes.descendants(first.pid) if name_of(pid).startswith("godwit")]
    if not pids:
        return False
    box.stop(node)
    for pid in pids:
        send(pid, signal.SIGSTOP)
    mark_down(node)
    over.wait(rng.uniform(4, 10))
    for pid in pids:
        send(pid, signal.SIGCONT)
    resume(box, node)
    return True


def finished_twice(box, rng, _place, over):
    """slurmstepd dies: Slurm does not hear how its tasks ended, and starts them again."""
    node = some_node(rng)
    if not node or not box.kill_steps(node):
        return False
    over.wait(rng.uniform(0.5, 3))
    return True


def forgetful(box, rng, _place, over):
    """The controller dies, and has forgotten up to five seconds: what it started, it starts again."""
    box.crash_controller()
    over.wait(rng.uniform(0.2, 3))
    box.recover()
    over.wait(6)
    for node in box.nodes:
        slurm("scontrol", "update", f"nodename={node}", "state=resume")
    return True


def too_early(_box, _rng, place, _over):
    """The next start comes before its time, as by a dependency on a job that Slurm has forgotten."""
    done = subprocess.run([ground.godwit(), "run", place, "--engine", "slurm", "--detach"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    # The run that follows its bundles holds the lock.
    return done.returncode == 11


def lost_script(box, rng, _place, over):
    """A task's script is gone before it starts: it fails, and has left nothing."""
    end = time.monotonic() + 1.5
    removed = set()
    before = {node: set(box.scripts(node)) for node in box.nodes}
    slurm("scontrol", "requeue", *slurm("squeue", "-h", "-t", "running", "-o", "%A")[:1])
    while time.monotonic() < end and not over.is_set():
        for node in box.nodes:
            for path in set(box.scripts(node)) - before[node]:
                try:
                    os.remove(path)
                    removed.add(path)
                except OSError:
                    pass
        time.sleep(0.002)
    return bool(removed)


def no_answer(box, rng, _place, over):
    """The controller does not answer for a while: that is not an empty queue."""
    for pid in [p for p in processes.descendants(box.processes["controller"].pid) if name_of(p) == "slurmctld"]:
        send(pid, signal.SIGSTOP)
        over.wait(rng.uniform(4, 9))
        send(pid, signal.SIGCONT)
    return True


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


TROUBLES = {
    "split-brain": split_brain, "frozen": frozen, "finished-twice": finished_twice, "forgetful": forgetful,
    "too-early": too_early, "lost-script": lost_script, "no-answer": no_answer,
}
