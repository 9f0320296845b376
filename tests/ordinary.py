"""What root has an ordinary user do: in a copy of the tree that is that user's, for the tree itself
may lie where only root can enter."""
import contextlib
import errno
import os
import pathlib
import shutil
import tempfile

NOBODY = 65534
EVERYBODYS = "/tmp"                     # TMPDIR may be a folder of root's alone
# History, what only compilers and linkers read, and what may vanish meanwhile. Results come back.
LEFT = shutil.ignore_patterns(".git", "obj", "*.a", "__pycache__", "results")
# Whole systems, of check-NAME: they may have devices, which would be read without an end, and each
# takes most of a gigabyte.
SYSTEMS = ("ansible", "cluster", "container", "deb-test")


def left(folder, names):
    """What of a folder's names is not copied."""
    systems = SYSTEMS if pathlib.Path(folder) == pathlib.Path("build") else ()
    return set(LEFT(folder, names)).union(systems)


def copy_tree(copy):
    """Leaves out what vanishes while it is copied: a linker or a fuzzer of a suite that runs beside
    this one removes files. What this suite needs was built before, and stays."""
    try:
        shutil.copytree(".", copy, symlinks=True, ignore=left)
    except shutil.Error as error:
        vanished = "[Errno %d]" % errno.ENOENT
        others = [each for each in error.args[0] if not each[2].startswith(vanished)]
        if others:
            raise shutil.Error(others) from error


def environment(env, home):
    """Without root's own folders."""
    kept = {k: v for k, v in env.items() if k != "TMPDIR" and not k.startswith("XDG_")}
    return {**kept, "HOME": home, "USER": "nobody", "LOGNAME": "nobody"}


@contextlib.contextmanager
def hand_over(env, results):
    """Yields keywords for Popen with which a command runs so, in the place of this folder. What it
    leaves in the copy's `results` is in this folder's in the end."""
    top = tempfile.mkdtemp(prefix="perseas-", dir=EVERYBODYS)
    try:
        copy = pathlib.Path(top, "tree")
        copy_tree(copy)
        (copy / results).mkdir(parents=True)
        for folder, _, files in os.walk(top):
            for path in (folder, *(os.path.join(folder, name) for name in files)):
                os.lchown(path, NOBODY, NOBODY)
        yield {"cwd": copy, "env": environment(env, str(copy)), "user": NOBODY, "group": NOBODY,
               "extra_groups": []}
        shutil.copytree(copy / results, results, symlinks=True, dirs_exist_ok=True)
    finally:
        shutil.rmtree(top, ignore_errors=True)
