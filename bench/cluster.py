"""Starts mirrors on this host for the demo, the benchmarks and the drills, on ports that the system
picks and in a temporary folder. Leaving the `with` block stops the mirrors and deletes the folder.
"""
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PR_SET_PDEATHSIG = 1
# PERSEAS_GUEST says that this machine is emulated, where everything takes longer.
EMULATED = "PERSEAS_GUEST" in os.environ
# make coverage: a process writes its counters only if it ends by itself.
COUNTED = "PERSEAS_COVERAGE" in os.environ
PATIENCE = 6 if EMULATED else 1
# Timeouts only guard against hanging: a test fails after this many seconds without progress.
# Mutants that a test must kill (tests/mutants) hang on purpose, so their runs set less.
HANGING_SECONDS = int(os.environ.get("PERSEAS_HANGING", 600))
SETPRIV = None if EMULATED else shutil.which("setpriv")     # of util-linux; guests have another
INTERRUPTS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM}


def die_with_parent():
    """Runs in the child: has the kernel kill it when its parent is killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def tied(words):
    """Returns keywords for Popen to start a process that dies when its parent is killed. Avoids a
    preexec_fn, because Python would then fork, which takes several ms in a process as large as
    pytest."""
    words = [str(word) for word in words]
    if not SETPRIV:
        return {"args": words, "preexec_fn": die_with_parent}
    return {"args": [SETPRIV, "--pdeathsig", "KILL", *words]}


def stolen_seconds():
    """Returns the seconds that the host of this virtual machine took from all its processors since
    boot: while it ran others, they stood still."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")


def wait_for(predicate, seconds, what):
    """Calls predicate() until it returns a true value, which it returns. Raises TimeoutError with
    `what` after `seconds`."""
    until = time.monotonic() + seconds
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > until:
            raise TimeoutError("%s: not within %g s" % (what, seconds))
        time.sleep(0.005)


def in_memory(folder):
    """Returns True if this folder is on a file system in memory."""
    lines = pathlib.Path("/proc/self/mounts").read_text().splitlines()
    mounts = [line.split()[1:3] for line in lines]
    above = [(len(at), kind) for at, kind in mounts
             if pathlib.Path(at) in [folder.resolve(), *folder.resolve().parents]]
    return max(above, default=(0, ""))[1] in ("tmpfs", "ramfs")


class Mirror:
    """One perseasd process."""
    wrap = []                           # a program and its arguments that start perseasd
    more = []                           # options of all mirrors

    def __init__(self, program, folder, index, options, host="127.0.0.1"):
        self.program, self.index, self.options = program, index, list(options)
        self.host = host
        self.folder = folder / ("mirror%d" % index)
        self.folder.mkdir()
        self.socket = self.folder / "socket"
        self.port_file = self.folder / "port"
        self.log = self.folder / "log"
        self.port = 0
        self.place = None
        self.process = None

    def start(self, cpu=None):
        """Starts perseasd on the port that it had before, and waits until it listens."""
        self.spawn(cpu)
        wait_for(self._listens, HANGING_SECONDS, "mirror %d" % self.index)
        return self

    def spawn(self, cpu=None):
        """Starts perseasd, and does not wait."""
        if not self.place:
            self._take_port()

        def prepare():
            die_with_parent()
            os.sched_setaffinity(0, {cpu})

        self.port_file.unlink(missing_ok=True)
        words = [*self.wrap, str(self.program), "--listen", "%s:%d" % (self.host, self.port),
                 "--unix", str(self.socket), "--memory-dir", str(self.folder / "memory"),
                 "--port-file", str(self.port_file)] + self.more + self.options
        # Addresses other than the loopback belong to this host alone, or to machines and namespaces
        # of a test.
        if not self.host.startswith("127.") and "--tls-cert" not in words:
            words += ["--plaintext", "anywhere"]
        # TMPDIR, or a lack of room in /dev/shm, may put the folder on a disk.
        if not in_memory(self.folder):
            words += ["--unsafe-memory-on-disk", "on"]
        with open(self.log, "ab") as log:
            how = tied(words) if cpu is None else {"args": words, "preexec_fn": prepare}
            self.process = subprocess.Popen(**how, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)

    def _take_port(self):
        """Reserves a port with a socket that is bound but never listens. The daemon may listen on
        the port. While it is down, the system gives the port to nobody else, not even for a
        connect."""
        self.place = socket.socket()
        self.place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.place.bind((self.host, 0))
        self.port = self.place.getsockname()[1]

    def leave_port(self):
        if self.place:
            self.place.close()

    def _listens(self):
        if self.process.poll() is not None:
            raise RuntimeError("mirror %d ended at its start:\n%s" %
                               (self.index, self.log.read_text(errors="replace")))
        return self.port_file.exists() and self.port_file.read_text().strip()

    @property
    def tcp(self):
        return "%s:%d" % (self.host, self.port)

    @property
    def rdma(self):
        return "rdma://%s:%d" % (self.host, self.port)

    @property
    def unix(self):
        return "unix://%s" % self.socket

    def kill(self):
        """Kills perseasd with SIGKILL."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Ends perseasd with SIGTERM. Returns its exit status."""
        self.process.terminate()
        try:
            return self.process.wait(HANGING_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL

    def lose_memory(self):
        """Deletes the mirror's memory, as a restart of its host would."""
        shutil.rmtree(self.folder / "memory", ignore_errors=True)


class Cluster:
    """with Cluster(build, 3) as cluster: ... `hosts` are the addresses to listen at, by default the
    loopback."""

    def __init__(self, build, mirrors, options=(), cpus=None, room=300 << 20, hosts=()):
        self.build = pathlib.Path(build).resolve()
        self.count, self.options, self.cpus, self.room = mirrors, options, cpus or {}, room
        self.hosts = list(hosts) or ["127.0.0.1"] * mirrors
        self.mirrors, self.processes, self.folder = [], [], None

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="perseas-", dir=self._place()))
        try:
            for index in range(self.count):
                mirror = Mirror(self.build / "perseasd", self.folder, index, self.options,
                                self.hosts[index])
                self.mirrors.append(mirror)
                mirror.start(self.cpus.get(index))
        except BaseException:
            self.__exit__()
            raise
        return self

    def _place(self):
        """Returns the folder for the mirrors: TMPDIR if it is set, memory if there is enough, else
        the default."""
        shm = "/dev/shm"
        if "TMPDIR" in os.environ:
            return os.environ["TMPDIR"]
        if os.access(shm, os.W_OK) and shutil.disk_usage(shm).free > self.room:
            return shm
        return None

    def __exit__(self, *_):
        # An interrupt during cleanup waits until cleanup is done.
        held = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
        try:
            self._tidy_up()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)

    def _tidy_up(self):
        for process in self.processes + [m.process for m in self.mirrors if m.process]:
            if process.poll() is None:
                if COUNTED:
                    process.terminate()
                else:
                    process.kill()
            process.wait()
        for mirror in self.mirrors:
            mirror.leave_port()
        shutil.rmtree(self.folder, ignore_errors=True)

    def tcp(self, count=None):
        return ",".join(m.tcp for m in self.mirrors[:count])

    def unix(self, count=None):
        return ",".join(m.unix for m in self.mirrors[:count])

    def rdma(self, count=None):
        return ",".join(m.rdma for m in self.mirrors[:count])

    def drop(self, store, mirrors, **keywords):
        """Deletes a store from these mirrors."""
        done = self.run(self.build / "perseas", "drop", store, mirrors, "--yes", **keywords)
        if done.returncode:
            raise RuntimeError("drop: status %d\n%s" % (done.returncode, done.stderr))

    def spawn(self, *words, **keywords):
        """Starts a process that ends with the cluster."""
        process = subprocess.Popen(**tied(words), stdin=subprocess.DEVNULL, **keywords)
        self.processes.append(process)
        return process

    def run(self, *words, seconds=HANGING_SECONDS, **keywords):
        """Runs a command to its end. Returns the CompletedProcess, with output as text."""
        return subprocess.run(**tied(words), stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=seconds,
                              **keywords)
