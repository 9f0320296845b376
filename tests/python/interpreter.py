"""Interpreters of their own, for tests of what could bring one down, and what is mapped in this
one. They must never be given text that a test did not write.
"""
import os
import pathlib
import subprocess
import sys

from drill import SECONDS


def script(text, *words):
    """Runs it in an interpreter of its own, which prints what Python was doing if it crashes."""
    return subprocess.run([sys.executable, "-X", "faulthandler", "-W", "ignore::ResourceWarning",
                           "-c", text, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=SECONDS,
                          env=dict(os.environ, PYTHONPATH=os.environ["PERSEAS_PYTHON"]))


def succeeds(text, *words):
    done = script(text, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def is_mapped(address):
    return any(int(line.split("-")[0], 16) <= address < int(line.split("-")[1].split()[0], 16)
               for line in pathlib.Path("/proc/self/maps").read_text().splitlines())
