"""Fixtures and marks for all drills, and the choice of fabrics.

PERSEAS_FABRICS selects among the variants of a drill that differ only in their fabric. A list such
as "tcp,tls" runs the variants for these fabrics. "one" runs one variant of each drill, chosen by a
hash of its name. Without it, all variants run.
"""
import os
import pathlib
import signal
import sys
import tempfile
import zlib

import pytest
from authority import authority  # noqa: F401
from drill import bank, fabric, mirrors, owner, perseas  # noqa: F401

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import preflight  # noqa: E402

# A shell makes background processes ignore SIGINT, and nohup makes them ignore SIGHUP. Processes
# that drills start would inherit that, and drills send them these signals.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Drills that use these fixtures get the mark `root`; others set it themselves.
ROOTS = {"network": "makes network namespaces", "tiny_disk": "mounts a file system",
         "small_memory": "mounts a file system"}

# What drills that use these fixtures need of the machine (tests/preflight.py); others mark
# themselves.
NEEDS = {"network": "namespaces", "tiny_disk": "mounts", "small_memory": "mounts",
         "shell": "own_namespaces"}

# Modules whose drills get the mark `night`; other modules mark single drills.
NIGHTS = {"test_abi": "tries check-abi", "test_ansible": "Ansible takes long",
          "test_bench_table": "tries the benchmarks", "test_figures": "tries the figures",
          "test_fuzz": "tries the fuzzers' report", "test_mutants": "tries the runner of mutants",
          "test_netns": "tries the drills' network",
          "test_ordinary": "tries the copy of the tree", "test_page": "starts a browser",
          "test_preflight": "tries preflight", "test_relay": "tries the relay",
          "test_release": "tries make release",
          "test_runner": "tries the tests' runner", "test_sentinel": "tries the sentinel",
          "test_storm": "the same faults again and again",
          "test_torture": "everything at once, for ten seconds",
          "test_upgrade": "builds other versions", "test_versions": "every pair of versions"}


def pytest_configure(config):
    config.addinivalue_line("markers", "root(does): needs root, who alone does this")
    config.addinivalue_line("markers", "timing(what): asserts of time, or of what happens in "
                            "it: `make check` runs nothing beside it")
    config.addinivalue_line("markers", "needs(name): is skipped where preflight.lacks(name)")
    config.addinivalue_line("markers", "night(why): `make check-night` runs it, not `make check`")


def pytest_itemcollected(item):
    """Skips drills marked `root` for an ordinary user. For root, `make check-drills` runs only
    those."""
    if item.path.stem in NIGHTS:
        item.add_marker(pytest.mark.night(NIGHTS[item.path.stem]))
    for name in ROOTS.keys() & set(item.fixturenames):
        item.add_marker(pytest.mark.root(ROOTS[name]))
    mark = item.get_closest_marker("root")
    if mark and os.geteuid():
        item.add_marker(pytest.mark.skip(reason="only root %s" % mark.args[0]))
    for name in NEEDS.keys() & set(item.fixturenames):
        item.add_marker(pytest.mark.needs(NEEDS[name]))


def pytest_runtest_setup(item):
    for mark in item.iter_markers("needs"):
        if preflight.lacks(mark.args[0]):
            pytest.skip(preflight.lacks(mark.args[0]))


@pytest.fixture
def short_path():
    """A folder for programs that create Unix sockets below it: their paths may have 107 bytes, and
    tmp_path is too long."""
    with tempfile.TemporaryDirectory(prefix="perseas-") as folder:
        yield pathlib.Path(folder)


def fabric_of(item):
    """Returns the fabric that the drill is parametrized with, or None."""
    return item.callspec.params.get("fabric") if hasattr(item, "callspec") else None


def one_fabric(items):
    """Returns for each drill the variant whose fabric its name selects."""
    alike = {}
    for item in items:
        others = [each for each in item.callspec.id.split("-") if each != fabric_of(item)]
        name = "%s::%s[%s]" % (item.path.name, item.originalname, "-".join(others))
        alike.setdefault(name, []).append(item)
    return {each[zlib.crc32(name.encode()) % len(each)] for name, each in alike.items()}


def pytest_collection_modifyitems(config, items):
    wanted = os.environ.get("PERSEAS_FABRICS")
    if not wanted:
        return
    parametrized = [item for item in items if fabric_of(item)]
    if wanted == "one":
        chosen = one_fabric(parametrized)
    else:
        chosen = {item for item in parametrized if fabric_of(item) in wanted.split(",")}
    config.hook.pytest_deselected(items=[item for item in parametrized if item not in chosen])
    items[:] = [item for item in items if not fabric_of(item) or item in chosen]
