"""A Slurm cluster on this machine alone, for trials: a few nodes on 127.0.0.1, each in namespaces of its own,
so that one kill is a power cut. Nothing under /etc changes, and everything ends with `close`."""
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from . import ground

PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo", "munged")

# The first process of a node: it adopts what slurmd leaves behind, and starts slurmd again when it is told to.
INIT = r"""
import os, subprocess, sys, time
conf, node, wanted = sys.argv[1:]
daemon = None
while True:
    if daemon is None and os.path.exists(wanted):
        daemon = subprocess.Popen(["slurmd", "-D", "-f", conf, "-N", node], stdin=subprocess.DEVNULL)
    try:
        pid, _ = os.waitpid(-1, os.WNOHANG)
        if daemon is not None and pid == daemon.pid:
            daemon = None
    except ChildProcessError:
        pid = 0
    if not pid:
        time.sleep(0.05)
"""

CONF = """\
ClusterName=trial
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={box}/munge.sock,cred_expire=5
SlurmUser=root
SlurmdUser=root
StateSaveLocation={box}/state
SlurmdSpoolDir={box}/spool/%n
SlurmctldPidFile={box}/slurmctld.pid
SlurmdPidFile={box}/%n.pid
SlurmctldLogFile={box}/slurmctld.log
SlurmdLogFile={box}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
PropagateResourceLimits=NONE
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/filetxt
JobCompLoc={box}/jobs.txt
Epilog=/bin/true
SlurmdTimeout=5
MessageTimeout=5
ReturnToService=2
KillWait=12
BatchStartTimeout=10
JobRequeue=1
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,default_queue_depth=1000
"""


def installed():
    return all(shutil.which(name, path=path()) for name in PROGRAMS)


def path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def install(packages=PACKAGES):
    """Debian's packages, without letting them start daemons; False where they cannot be had."""
    if os.geteuid() or not shutil.which("apt-get"):
        return False
    policy = "/usr/sbin/policy-rc.d"
    ours = not os.path.exists(policy)
    if ours:
        with open(policy, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexit 101\n")
        os.chmod(policy, 0o755)
    try:
        env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        apt = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=120"]
        for command in (["update"], ["install", "--no-install-recommends", *packages]):
            done = subprocess.run(apt + command, env=env, stdin=subprocess.DEVNULL, stdout=sys.stderr)
            if done.returncode:
                return False
        return True
    finally:
        if ours:
            os.remove(policy)


def why_not():
    """Why there can be no cluster here; None where there can."""
    if os.geteuid():
        return "it needs root, for namespaces"
    if subprocess.run(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts", "true"],
                      stderr=subprocess.DEVNULL).returncode:
        return "this machine gives no namespaces"
    if not installed() and not install():
        return f"the packages {', '.join(PACKAGES)} cannot be installed"
    return None


class Box:
    """The cluster. Its processes are held by handles, and by nothing that others could have, too."""

    def __init__(self, nodes=3, cpus=2):
        # A trial that is ended by a signal takes its cluster with it.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        # Slurm's processes dump core when they are struck, into the folder that the trial was started in.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        self.folder = tempfile.mkdtemp(prefix="gw-slurm-", dir="/tmp")   # unix sockets need a short path
        os.chmod(self.folder, 0o755)
        self.cpus, self.nodes = cpus, [f"n{i + 1}" for i in range(nodes)]
        self.conf = os.path.join(self.folder, "slurm.conf")
        self.processes = {}
        os.environ["SLURM_CONF"] = self.conf
        os.environ["PATH"] = path()
        for name in ("state", "spool"):
            os.mkdir(os.path.join(self.folder, name))
        self._write()
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _write(self):
        port = free_ports(len(self.nodes) + 1)
        text = CONF.format(box=self.folder, port=port)
        megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
        for number, node in enumerate(self.nodes):
            os.mkdir(os.path.join(self.folder, "spool", node))
            text += (f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port + number + 1} "
                     f"CPUs={self.cpus} RealMemory={megabytes} State=UNKNOWN\n")
        text += "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
        for name, content in (("slurm.conf", text), ("cgroup.conf", "CgroupPlugin=cgroup/v1\n"), ("init.py", INIT)):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(content)
        with open(os.open(os.path.join(self.folder, "munge.key"), os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(os.urandom(1024))

    def _spawn(self, name, command):
        with open(os.path.join(self.folder, f"{name}.out"), "ab") as log:
            self.processes[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def _start(self):
        self._spawn("munged", ["munged", "--foreground", "--force", f"--socket={self.folder}/munge.sock",
                               f"--key-file={self.folder}/munge.key", f"--pid-file={self.folder}/munged.pid",
                               f"--seed-file={self.folder}/munge.seed", f"--log-file={self.folder}/munged.log",
                               "--origin=127.0.0.1"])
        wait(lambda: os.path.exists(f"{self.folder}/munge.sock"), 10, "munged")
        self.start_controller()
        for node in self.nodes:
            self.start(node)
        wait(lambda: self.states().count("idle") == len(self.nodes), 30, "the nodes")

    def _unshared(self, script, *arguments):
        # Slurm asks a login shell for the environment of a task. What this machine's owner has it do may take a
        # lock, which a node that crashes would leave behind.
        quiet = "for f in ~/.bashrc ~/.bash_profile ~/.profile; do [ ! -f $f ] || mount --bind /dev/null $f; done; "
        return ["unshare", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                "hostname localhost; " + quiet + script, *arguments]

    def start_controller(self):
        self._spawn("controller", self._unshared('slurmctld -D -f "$0" & wait $!', self.conf))

    def crash_controller(self):
        """Up to five seconds of what it knew are lost."""
        self._kill("controller")

    def _kill(self, name):
        process = self.processes.pop(name, None)
        if process is not None:
            process.kill()      # unshare ends what it started with it
            process.wait()

    def _wanted(self, node):
        return os.path.join(self.folder, f"{node}.wanted")

    def start(self, node):
        with open(self._wanted(node), "w", encoding="utf-8"):
            pass
        if node not in self.processes:
            self._spawn(node, self._unshared('exec python3 "$0" "$1" "$2" "$3"', f"{self.folder}/init.py", self.conf,
                                             node, self._wanted(node)))

    def crash(self, node):
        """A power cut: slurmd and every task of the node end at once."""
        self._forget(node)
        self._kill(node)

    def stop(self, node):
        """Only slurmd ends. Its tasks go on, and the controller believes them dead after a while."""
        self._forget(node)
        for pid in self._children(node, "slurmd"):
            os.kill(pid, signal.SIGKILL)

    def kill_steps(self, node):
        """The processes that watch tasks end; Slurm does not hear how the tasks ended."""
        pids = self._children(node, "slurmstepd")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return len(pids)

    def _forget(self, node):
        if os.path.exists(self._wanted(node)):
            os.remove(self._wanted(node))

    def _children(self, node, name):
        """Of the node's first process: those with a name."""
        process = self.processes.get(node)
        found = []
        for first in children(process.pid) if process else []:
            for pid in children(first):
                try:
                    with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                        if file.read().strip() == name:
                            found.append(pid)
                except OSError:
                    pass
        return found

    def scripts(self, node):
        """The job scripts that wait on a node to be started, or run."""
        spool = os.path.join(self.folder, "spool", node)
        return [os.path.join(base, name) for base, _, names in os.walk(spool) for name in names if name == "slurm_script"]

    def states(self):
        done = subprocess.run(["sinfo", "-h", "-N", "-o", "%T"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return done.stdout.decode().split()

    def recover(self):
        """Brings every node back, as an operator would."""
        if "controller" not in self.processes:
            self.start_controller()
        for node in self.nodes:
            self.start(node)
        for node in self.nodes:
            subprocess.run(["scontrol", "update", f"nodename={node}", "state=resume"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)

    def close(self):
        for name in list(self.processes):
            self._kill(name)
        for _ in range(20):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not os.path.exists(self.folder):
                return
            time.sleep(0.1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def free_ports(count):
    """The first of so many free ones, below those that the kernel gives away."""
    for _ in range(200):
        first = random.randrange(20000, 32000 - count)
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise SystemExit("no free ports")


def wait(is_over, seconds, what):
    end = time.monotonic() + seconds
    while not is_over():
        if time.monotonic() > end:
            raise SystemExit(f"{what} did not come up in {seconds} s")
        time.sleep(0.05)


def say(*words):
    ground.say(*words)
