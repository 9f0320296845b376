"""Stores that C++ creates and C opens, and the reverse. Their owners are killed with kill -9 during
transactions, and the next owner continues with the same bank."""
import os
import re
import subprocess

import pytest

from cluster import Cluster
from drill import BUILD, SECONDS, die_with_parent, run_command, wait_ownerless
from guide import EXAMPLES, binary_name, compile_c, root  # noqa: F401

ROUNDS = 4


@pytest.fixture(scope="module")
def banks(root, tmp_path_factory):  # noqa: F811
    """The bank in C, and the bank in C++."""
    folder = tmp_path_factory.mktemp("banks")
    for name in ("bank.c", "bank.cpp"):
        compile_c(EXAMPLES / name, folder / binary_name(EXAMPLES / name), root)
    return [folder / binary_name(EXAMPLES / name) for name in ("bank.c", "bank.cpp")]


def owner(bank, mirrors, *count):
    return subprocess.Popen([str(bank), mirrors, *count], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent,
                            env=dict(os.environ, LD_LIBRARY_PATH=str(BUILD)))


def transfers_in(line):
    return int(re.search(r"(\d+) transfers", line)[1])


def kill_in_the_middle(bank, mirrors):
    """Kills the bank after some more transfers, the last of which may be on one mirror only.
    Returns how many there were when it opened the store."""
    process = owner(bank, mirrors)
    try:
        found = process.stdout.readline()
        assert found.startswith("open, epoch"), found + process.stderr.read()
        before = newest(mirrors)
        while newest(mirrors) < before + 11:
            assert process.poll() is None, process.stderr.read()
    finally:
        process.kill()
        process.communicate()
    wait_ownerless("bank", mirrors)
    return transfers_in(found)


def newest(mirrors):
    told = run_command("status", "bank", "--json", mirrors=mirrors).json()
    return told["newest"]["seq"]


@pytest.mark.parametrize("first", (0, 1), ids=("c-first", "cpp-first"))
def test_banks_of_two_languages_follow_one_another(first, banks):
    with Cluster(BUILD, 3) as cluster:
        mirrors = cluster.tcp()
        seen = 0
        for number in range(ROUNDS):
            found = kill_in_the_middle(banks[(first + number) % 2], mirrors)
            assert found >= seen + 10 * bool(number)
            seen = found
        process = owner(banks[first], mirrors, "10")
        out, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, err
        lines = out.splitlines()
        # C++ created the same bytes: no money is lost, and the count is right.
        assert "100000 in all accounts" in lines[1], out
        assert transfers_in(lines[1]) == transfers_in(lines[0]) + 10 and \
            transfers_in(lines[0]) >= seen + 10
        for verb in "recover", "verify":
            assert run_command(verb, "bank", mirrors=mirrors).status == 0
