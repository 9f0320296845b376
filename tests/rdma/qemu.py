"""One machine under QEMU: boots, does its job, is gone when the `with` block is.

A job is a shell script that runs in the guest, in the host's root as it is (read-only), with the
folder for output writable and /tmp, /run, /var/tmp and /dev/shm in the guest's memory.
"""
import contextlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import initramfs
from host_clock import counter_khz
from kernel import Problem, cache, dependencies, kernel
from monitor import Monitor

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parents[1]
sys.path.insert(0, str(TREE / "bench"))

from cluster import die_with_parent, wait_for  # noqa: E402

QEMU = "qemu-system-x86_64"
ORDERLY = 85                            # 2 * 42 + 1, see leave() in boot.sh
BOOT_SECONDS = 120                      # 4 where nothing else runs
SHOWN_LINES = 60
WATCH_SECONDS = 0.02                    # between two looks at what a job has said

# Folders that the guest has of its own: the host's folders below them are shown one by one.
OWN = ("/tmp", "/run", "/var/tmp", "/dev/shm")

# maxcpus: the other processors come when the nodes are made (boot.sh). A kernel that starts patches
# its own code, by a breakpoint, and once in hundreds of starts QEMU's emulation has one processor
# run a breakpoint that another has taken away already: an "Oops: int3" of which nobody is guilty.
# no_timer_check: a busy host delays the timer that the kernel waits for, and then it would panic.
CMDLINE = ("console=ttyS0 quiet panic=-1 oops=panic mitigations=off tsc=reliable no_timer_check "
           "rcupdate.rcu_expedited=1 audit=0 lsm=capability 8250.nr_uarts=1 maxcpus=1")

# How processors are emulated. A steady machine has one, whose clock counts instructions, 2 ns each:
# what is measured there does not depend on what else the host does. ERMS is a processor's quick way
# to copy by single bytes, each of which would count as an instruction.
PROCESSORS = {False: ("-accel", "tcg,thread=multi", "-cpu", "max"),
              True: ("-accel", "tcg,thread=single", "-cpu", "max,-erms,-fsrm",
                     "-icount", "shift=1,sleep=on")}

# The counter of a steady machine ticks once for each ns of the machine's own time.
STEADY_KHZ = 1000000

# What each provider of RDMA needs; the checksums are used, but not named by it.
RDMA_MODULES = ("ib_uverbs", "rdma_ucm", "crc32_generic", "crc32c_generic", "libcrc32c")
PROVIDERS = {"rxe": RDMA_MODULES + ("rdma_rxe",), "siw": RDMA_MODULES + ("iw_cm",)}
DEVICES = {"up": ("veth", "bridge"), "machine": ("virtio_net",)}

# How a guest's kernel says on the console that it panicked. Under emulation on a busy host this
# happens without any fault of the job, so the rig may run the job again.
PANIC = re.compile(r"Kernel panic|Oops:|BUG: |double fault")
ATTEMPTS = 5
panics = []                             # lines of guests that have ended

# What of the caller's environment a job sees.
PASSED = ("PERSEAS_", "CMOCKA_", "ASAN_", "UBSAN_", "PYTEST_")


class Failure(Exception):
    """A guest that did not end in an orderly way."""


class Options:
    """What a machine is made of."""

    def __init__(self, cpus=2, memory="2G", nodes="", provider="rxe", seen=(), output=None,
                 name="perseas", steady=False):
        self.cpus, self.memory, self.nodes = 1 if steady else cpus, memory, nodes
        self.steady = steady
        self.provider, self.name = provider, name
        self.seen = [pathlib.Path(path).resolve() for path in seen]
        self.output = output


def job_of(words, folder=None):
    """The script that runs this command as if here."""
    lines = ["cd %s || exit 127" % shlex.quote(str(folder or pathlib.Path.cwd()))]
    for name, value in sorted(os.environ.items()):
        if name.startswith(PASSED) and name.replace("_", "a").isalnum():
            lines.append("export %s=%s" % (name, shlex.quote(value)))
    lines.append("export HOME=/tmp PERSEAS_GUEST=1")
    lines.append("exec " + " ".join(shlex.quote(str(word)) for word in words))
    return "\n".join(lines) + "\n"


def tick_khz(steady):
    """How fast the time-stamp counter of a machine ticks, see host_clock.py."""
    return STEADY_KHZ if steady else counter_khz()


class Guest:
    """A machine with a job; `devices` are more words for QEMU, which inherits `sockets`."""

    def __init__(self, job, options, devices=(), sockets=()):
        self.job, self.options = job, options
        self.devices, self.sockets = list(devices), list(sockets)
        self.output = self.process = None
        self.made = False
        self.monitor = Monitor()

    def __enter__(self):
        try:
            self.power_on()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def power_on(self):
        if not shutil.which(QEMU):
            raise Problem("%s is missing; install it with: deploy/deps.sh rdma-test" % QEMU)
        root = kernel()
        self.output = self._output()
        inherited = [each.fileno() for each in self.sockets + [self.monitor.line.theirs]]
        # Nothing of ours has a name in a file system, so that nothing is left of a rig that is
        # killed.
        with open(self.output / "qemu", "wb") as said, tempfile.TemporaryFile() as archive:
            archive.write(initramfs.build(root, self._settings(root), self.job))
            archive.flush()
            self.process = subprocess.Popen(
                self._words(root, "/proc/self/fd/%d" % archive.fileno()),
                stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent, pass_fds=inherited + [archive.fileno()])
        self.monitor.line.theirs.close()

    def _output(self):
        """The folder for output; one that was made for this run goes when all went well."""
        if self.options.output:
            folder = pathlib.Path(self.options.output).resolve()
            folder.mkdir(parents=True, exist_ok=True)
            for name in ("status", "problem", "output", "nodes"):
                (folder / name).unlink(missing_ok=True)
            return folder
        results = TREE / "build/results/rdma"
        results.mkdir(parents=True, exist_ok=True)
        self.made = True
        return pathlib.Path(tempfile.mkdtemp(prefix="%s-" % self.options.name, dir=results))

    def _settings(self, root):
        seen = [TREE, pathlib.Path.cwd(), cache()] + self.options.seen
        if "PERSEAS_BUILD" in os.environ:
            seen.append(pathlib.Path(os.environ["PERSEAS_BUILD"]).resolve())
        hidden = sorted({str(path) for path in seen if str(path).startswith(OWN)})
        values = {"TREE": TREE, "OUTPUT": self.output, "KERNEL": root, "SEEN": " ".join(hidden),
                  "NODES": self.options.nodes, "PROVIDER": self.options.provider,
                  "LOAD": " ".join(map(str, self._modules(root))), "NAME": self.options.name}
        return "".join("%s=%s\n" % (name, shlex.quote(str(value)))
                       for name, value in values.items())

    def _modules(self, root):
        """The modules to load, in this order: an emulated modprobe takes a second to find out."""
        names = PROVIDERS[self.options.provider]
        if self.options.nodes:
            names += DEVICES[self.options.nodes.split()[0]]
        paths = dependencies(root, (root / "release").read_text().strip(), names)
        if self.options.provider == "siw":
            paths.append(cache() / "siw" / root.name / "siw.ko")
        return paths

    def _words(self, root, archive):
        """QEMU's command line."""
        def share(name, path, more):
            return ["-fsdev", "local,id=%s,path=%s,security_model=none%s" % (name, path, more),
                    "-device", "virtio-9p-pci,fsdev=%s,mount_tag=%s" % (name, name)]

        return [QEMU, "-M", "q35", *PROCESSORS[self.options.steady],
                "-smp", str(self.options.cpus), "-m", self.options.memory,
                "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                "-kernel", str(root / "vmlinux"), "-initrd", archive, "-append",
                "%s tsc_early_khz=%d" % (CMDLINE, tick_khz(self.options.steady)),
                "-serial", "file:%s" % (self.output / "console"),
                "-device", "isa-debug-exit,iobase=0xf4,iosize=4",
                *self.monitor.words(),
                *share("root", "/", ",readonly=on,multidevs=remap"),
                *share("output", self.output, ""), *self.devices]

    @property
    def text(self):
        """What the job has said until now."""
        path = self.output / "output"
        return path.read_text(errors="replace") if path.exists() else ""

    def wait(self, seconds, watch=lambda: None):
        """The job's status, once the machine has ended; Failure when it does not end so. watch() is
        called again and again."""
        until = time.monotonic() + seconds
        while self.running():
            watch()
            if time.monotonic() > until:
                self.kill()
                raise Failure(self.describe("no end within %g s" % seconds))
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(WATCH_SECONDS)
        watch()
        status = self.process.returncode
        path = self.output / "status"
        if status != ORDERLY or not path.exists():
            raise Failure(self.describe("the machine ended with QEMU's status %d" % status))
        return int(path.read_text())

    def describe(self, what):
        """A Failure's text, with all that may tell why."""
        lines = ["%s; its files are in %s" % (what, self.output)]
        for name in ("problem", "qemu", "nodes", "output", "console"):
            path = self.output / name
            if path.exists():
                text = path.read_text(errors="replace").splitlines()[-SHOWN_LINES:]
                lines += ["%s: %s" % (name, line) for line in text]
        return "\n".join(lines)

    def say_console(self):
        """What the kernel warned of, if it did."""
        for line in (self.output / "console").read_text(errors="replace").splitlines():
            print("console: " + line, file=sys.stderr)

    def running(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """kill -9: the power fails."""
        if self.running():
            self.process.kill()
        if self.process:
            self.process.wait()

    def note_panic(self):
        """Notes the line with which the guest's kernel panicked, if it did."""
        console = self.output / "console" if self.output else None
        if console and console.exists():
            lines = console.read_text(errors="replace").splitlines()
            panics.extend([line for line in lines if PANIC.search(line)][:1])

    def __exit__(self, kind, *_):
        self.kill()
        self.monitor.close()
        self.note_panic()
        if self.made and kind is None:
            shutil.rmtree(self.output, ignore_errors=True)


class Follower:
    """Copies a guest's output while it comes."""

    def __init__(self, guest, out):
        self.path, self.out, self.told = guest.output / "output", out, 0

    def __call__(self):
        if not self.path.exists():
            return
        with open(self.path, "rb") as file:
            file.seek(self.told)
            data = file.read()
        self.told += len(data)
        self.out.write(data)
        self.out.flush()


__all__ = ["ATTEMPTS", "Failure", "Follower", "Guest", "Options", "Problem", "job_of", "panics",
           "wait_for"]
