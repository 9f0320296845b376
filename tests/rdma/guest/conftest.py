"""The fixtures that every test in a guest can ask for. They run through tests/rdma/rig.py run
--nodes N; modules of the drills are theirs, too."""
import pathlib
import sys

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "tests/drills"))

from drill import fabric, mirrors, owner, perseas  # noqa: E402, F401
from wires import nodes, writer  # noqa: E402, F401


def pytest_configure(config):
    config.addinivalue_line("markers", "rxe: of acknowledged writes; siw's are done when sent")
