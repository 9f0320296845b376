"""The demo: its checks pass, and it leaves nothing behind."""
import os
import pathlib
import re
import subprocess
import sys

from drill import SECONDS, TOP


def start(folder):
    return subprocess.Popen([sys.executable, str(TOP / "bench/demo.py"), "--build",
                             str(TOP / "build")], env=dict(os.environ, TMPDIR=str(folder)),
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def gone(pid, folder):
    """Returns whether the process has ended. Another process may have its number now, but the
    demo's have the folder in their environment."""
    try:
        environment = pathlib.Path("/proc/%d/environ" % pid).read_bytes()
    except (FileNotFoundError, PermissionError, ProcessLookupError):
        return True
    return b"TMPDIR=%s\0" % os.fsencode(folder) not in environment


def nothing_left(folder, output):
    """Checks that neither files nor the processes named in the output are left."""
    pids = [int(pid) for pid in re.findall(r"pid (\d+)", output)]
    return len(pids) >= 3 and all(gone(pid, folder) for pid in pids) and not list(folder.iterdir())


def test_the_demo_holds_and_leaves_nothing(short_path):
    """The demo runs to its end."""
    demo = start(short_path)
    output, _ = demo.communicate(timeout=SECONDS)
    assert demo.returncode == 0, output
    assert "all held" in output
    assert "whose loss would be the loss of all three" in output
    assert nothing_left(short_path, output), output


def test_an_interrupted_demo_leaves_nothing(short_path):
    """SIGTERM arrives once the bank works and a mirror has been killed."""
    demo = start(short_path)
    output = ""
    for line in demo.stdout:
        output += line
        if "kill -9 of the mirror" in line:
            demo.terminate()
    assert demo.wait(SECONDS) == 1
    assert "interrupted" in output
    assert nothing_left(short_path, output), output
