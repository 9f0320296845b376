"""The archive that a guest boots from: busybox, the modules of its root file system, and what to
do. All else the guest takes from the host's root, which it mounts read-only."""
import pathlib
import shutil

from kernel import Problem, dependencies

HERE = pathlib.Path(__file__).resolve().parent
FOLDER, FILE, PROGRAM = 0o040755, 0o100644, 0o100755

# What the archive itself must bring: the root file system's.
FIRST_MODULES = ("9pnet_virtio", "9p")


class Archive:
    """A cpio archive of the kind `newc`, as the kernel unpacks it."""

    def __init__(self):
        self.parts, self.count = [], 0

    def add(self, name, mode, data=b""):
        self.count += 1
        path = name.encode() + b"\0"
        fields = (self.count, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields)
        for part in (header + path, data):
            self.parts.append(part + bytes(-len(part) % 4))

    def bytes(self):
        self.add("TRAILER!!!", 0)
        return b"".join(self.parts)


def busybox():
    """Debian's, which is linked statically."""
    path = shutil.which("busybox")
    if not path:
        raise Problem("busybox is missing: apt-get install busybox-static")
    return pathlib.Path(path).read_bytes()


def build(kernel, settings, job):
    """The archive's bytes; `settings` and `job` are shell scripts for boot.sh."""
    release = (kernel / "release").read_text().strip()
    archive = Archive()
    for folder in ("bin", "dev", "proc", "sys", "new", "host", "modules", "rig"):
        archive.add(folder, FOLDER)
    archive.add("bin/busybox", PROGRAM, busybox())
    for number, path in enumerate(dependencies(kernel, release, FIRST_MODULES)):
        archive.add("modules/%02d-%s" % (number, path.name), FILE, path.read_bytes())
    archive.add("init", PROGRAM, (HERE / "init.sh").read_bytes())
    archive.add("rig/settings", FILE, settings.encode())
    archive.add("rig/job", FILE, job.encode())
    return archive.bytes()
