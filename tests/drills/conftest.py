"""The fixtures that every drill can ask for, the marks of drills, and which fabrics they run on.

PERSEAS_FABRICS selects among the drills that are the same but for their fabric. A list such as
"tcp,tls" runs those of these fabrics. "one" runs each such drill on one fabric, which follows from
its name and stays the same. Without it, all of them run.
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

# A shell has what it runs in the background ignore SIGINT, and nohup SIGHUP. The processes that
# drills start would inherit that, and drills send these signals to them.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Drills that ask for these fixtures are marked `root` by that; others mark themselves.
ROOTS = {"network": "makes network namespaces", "tiny_disk": "mounts a file system",
         "small_memory": "mounts a file system"}

# What drills with these fixtures need of the machine (tests/preflight.py); others mark themselves.
NEEDS = {"network": "namespaces", "tiny_disk": "mounts", "small_memory": "mounts",
         "shell": "own_namespaces"}

# Modules of the night, whose drills are marked `night` by that; other modules mark single drills.
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
    """An ordinary user skips what is marked `root`; where root calls, `make check-drills` runs only
    that as root."""
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
    """A folder for programs that make Unix sockets below it, whose paths have 107 bytes at most:
    tmp_path leaves no room for theirs."""
    with tempfile.TemporaryDirectory(prefix="perseas-") as folder:
        yield pathlib.Path(folder)


def fabric_of(item):
    """The fabric that the drill is parametrized with, None if it is not."""
    return item.callspec.params.get("fabric") if hasattr(item, "callspec") else None


def one_fabric(items):
    """For each drill, without its fabric, the item of the fabric that its name selects."""
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
