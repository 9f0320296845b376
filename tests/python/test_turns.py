"""What `make bench` compares C and Python by: both programs do the same, and say how long it took.
"""
import os
import subprocess
import sys

from drill import BUILD, SECONDS, TOP
import perseas

PROGRAMS = {"c": [str(BUILD / "bench/turns")],
            "python": [sys.executable, str(TOP / "bench/turns.py")]}


def test_both_store_the_same_bytes(address):
    """So many transactions for each line, at the same places; a figure for each line."""
    contents = {}
    for language, words in PROGRAMS.items():
        done = subprocess.run([*words, address, language, "4096"], input="3\n2\n", text=True,
                              stdout=subprocess.PIPE, timeout=SECONDS,
                              env=dict(os.environ, PYTHONPATH=str(BUILD / "python")))
        assert done.returncode == 0
        took = [float(line) for line in done.stdout.splitlines()]
        assert len(took) == 2 and min(took) > 0
        with perseas.open(language, address) as store:
            contents[language] = bytes(store.map("room").view)
    assert contents["c"] == contents["python"]
    assert contents["c"] == b"x" * (3 * 4096) + bytes((8 << 20) - 3 * 4096)
