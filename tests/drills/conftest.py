"""The fixtures that every drill can ask for, what only root can do, and what is done with nothing
beside it."""
import os

import pytest
from authority import authority  # noqa: F401
from drill import fabric, mirrors, owner, perseas  # noqa: F401

# Drills that ask for these fixtures are marked `root` by that; others mark themselves.
ROOTS = {"network": "makes network namespaces", "tiny_disk": "mounts a file system",
         "small_memory": "mounts a file system"}


def pytest_configure(config):
    config.addinivalue_line("markers", "root(does): needs root, who alone does this")
    config.addinivalue_line("markers", "timing(what): asserts of time, or of what happens in "
                            "it: `make check` runs nothing beside it")


def pytest_itemcollected(item):
    """An ordinary user skips what is marked; where root calls, `make check-drills` runs only that
    as root."""
    for name in ROOTS.keys() & set(item.fixturenames):
        item.add_marker(pytest.mark.root(ROOTS[name]))
    mark = item.get_closest_marker("root")
    if mark and os.geteuid():
        item.add_marker(pytest.mark.skip(reason="only root %s" % mark.args[0]))
