#!/usr/bin/env python3
"""Fetches the kernel that the soft-RoCE tests boot, and prints the folder where it lies.

    kernel.py            the folder, fetched when there is none yet
    kernel.py --forget   removes what was fetched

It is Debian's own 6.12 kernel, which has the rxe driver; it is unpacked, never installed. apt
fetches it and verifies it as it does for every package. The folder holds `vmlinux` (not
compressed, which boots in half the time), `release`, `version` and below `lib/modules` the modules
that the tests need. A kernel in the cache is taken as it is; PERSEAS_CACHE names the cache, without
it ${XDG_CACHE_HOME:-~/.cache}/perseas.
"""
import fcntl
import hashlib
import lzma
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

META = "linux-image-6.12-amd64"

# With all that they depend on. No module names the checksums that rxe looks for when a link is
# added, nor does siw's.
MODULES = ("9p", "9pnet_virtio", "virtio_net", "crc32_generic", "crc32c_generic", "libcrc32c",
           "rdma_rxe", "rdma_ucm", "ib_uverbs", "iw_cm", "veth", "bridge", "sch_netem", "dummy",
           "macvlan", "tls")

# Nothing that apt cannot verify comes in, whatever the host's own configuration says.
VERIFIED = [word for name in ("Acquire::AllowInsecureRepositories",
                              "Acquire::AllowWeakRepositories",
                              "Acquire::AllowDowngradeToInsecureRepositories",
                              "APT::Get::AllowUnauthenticated")
            for word in ("-o", name + "=false")]


class Problem(Exception):
    """Said to the user in one sentence."""


def cache():
    """The folder for everything that is fetched."""
    if "PERSEAS_CACHE" in os.environ:
        return pathlib.Path(os.environ["PERSEAS_CACHE"]).resolve()
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base).resolve() / "perseas"


def kernels():
    return cache() / "kernel"


def flavour():
    """Kernels that were unpacked with another list of modules are not taken."""
    return hashlib.sha256(" ".join(MODULES).encode()).hexdigest()[:8]


def newest():
    """The kernel in the cache that was fetched last, or None. A folder has its final name only when
    it is whole."""
    found = sorted(kernels().glob("*-" + flavour()), key=lambda path: path.stat().st_mtime)
    return found[-1] if found else None


def run(*words, **keywords):
    """The output; Problem when it fails."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, **keywords)
    if done.returncode:
        raise Problem("%s:\n%s" % (" ".join(words), done.stderr.strip()))
    return done.stdout


def real_package():
    """What META depends on, as far as apt knows; None when it knows nothing."""
    try:
        for line in run("apt-cache", "depends", META).splitlines():
            if line.strip().startswith("Depends: linux-image-6.12."):
                return line.split()[1]
    except Problem:
        pass
    return None


def download(package, folder):
    """The package's file, in this folder."""
    sandbox = ["-o", "APT::Sandbox::User=root"] if os.geteuid() == 0 else []
    run("apt-get", "download", "-q", *VERIFIED, *sandbox, package, cwd=folder)
    files = list(folder.glob(package.partition("=")[0] + "_*.deb"))
    if len(files) != 1:
        raise Problem("apt-get download %s left %d files" % (package, len(files)))
    return files[0]


def download_kernel(folder):
    """Downloads what META stands for; looks for a newer list of packages when that fails."""
    try:
        if real_package():
            return download(real_package(), folder)
    except Problem as problem:
        print(problem, file=sys.stderr)
    try:
        if os.geteuid() == 0:
            run("apt-get", "update", "-q", *VERIFIED)
        if real_package():
            return download(real_package(), folder)
    except Problem as problem:
        raise Problem("%s\nThe kernel of the soft-RoCE tests is not in %s and cannot be fetched. "
                      "Is there a network?" % (problem, kernels())) from None
    raise Problem("apt knows no %s: this needs Debian 12 with bookworm-security in its sources, "
                  "and an `apt-get update`" % META)


def decompress(image):
    """The ELF file in a bzImage: its header says where (Documentation/arch/x86/boot.rst)."""
    setup_sectors = image[0x1f1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    packed = image[start:start + length - 4]    # the last four bytes are its unpacked size
    size = struct.unpack_from("<I", image, start + length - 4)[0]
    if packed.startswith(b"\xfd7zXZ"):
        plain = lzma.decompress(packed)
    else:
        plain = subprocess.run(["zstd", "-dcq", "--long=31"], input=packed, check=True,
                               stdout=subprocess.PIPE).stdout
    if len(plain) != size or not plain.startswith(b"\x7fELF"):
        raise Problem("the kernel's image is not what was expected")
    return plain


def dependencies(root, release, names):
    """The files of these modules and of all that they need, in the order to load them."""
    files = []
    for line in run("modprobe", "-d", str(root), "-S", release, "--show-depends", "-a",
                    *names).splitlines():
        kind, path = line.split()[:2]
        if kind == "insmod" and path not in files:
            files.append(path)
    return [pathlib.Path(path) for path in files]


def unsigned(module):
    """The module without its signature: to verify one takes an emulated processor 0.2 s, and apt
    has verified them all. (struct module_signature, whose length comes last, then the marker.)"""
    marker = b"~Module signature appended~\n"
    if not module.endswith(marker):
        return module
    end = len(module) - len(marker)
    return module[:end - 12 - struct.unpack_from(">I", module, end - 4)[0]]


def unpack_modules(whole, root, release):
    """Takes what is needed from the package's folder `whole` to `root`."""
    run("depmod", "-b", str(whole), release)
    for path in dependencies(whole, release, MODULES):
        # A module may stand in the host's /lib, which links to /usr/lib.
        place = root / path.relative_to(whole)
        place.parent.mkdir(parents=True, exist_ok=True)
        module = path.read_bytes()
        if path.suffix == ".xz":
            place, module = place.with_suffix(""), lzma.decompress(module)
        place.write_bytes(unsigned(module))
    modules = "lib/modules/" + release
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy(whole / modules / name, root / modules / name)
    run("depmod", "-b", str(root), release)


def fetch():
    """Fetches and unpacks; the folder."""
    with tempfile.TemporaryDirectory(prefix="new-", dir=kernels()) as name:
        top = pathlib.Path(name)
        package = download_kernel(top)
        whole, root = top / "whole", top / "kernel"
        run("dpkg", "-x", str(package), str(whole))
        release = next((whole / "lib/modules").iterdir()).name
        root.mkdir()
        unpack_modules(whole, root, release)
        image = (whole / "boot" / ("vmlinuz-" + release)).read_bytes()
        (root / "vmlinux").write_bytes(decompress(image))
        (root / "release").write_text(release + "\n")
        (root / "version").write_text(run("dpkg-deb", "-f", str(package), "Version"))
        for path in root.rglob("*"):
            if path.is_file():
                with open(path, "rb") as file:
                    os.fsync(file.fileno())
        place = kernels() / ("%s-%s" % (release, flavour()))
        os.rename(root, place)
        return place


def kernel():
    """The folder of the kernel. One process fetches, others wait for it."""
    kernels().mkdir(parents=True, exist_ok=True)
    with open(kernels() / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if newest():
            return newest()
        for left in kernels().glob("new-*"):    # by one that was killed
            shutil.rmtree(left, ignore_errors=True)
        return fetch()


def main():
    if sys.argv[1:] == ["--forget"]:
        shutil.rmtree(kernels(), ignore_errors=True)
        return 0
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        print(kernel())
    except (Problem, OSError) as problem:
        print("kernel.py: %s" % problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
