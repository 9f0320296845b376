"""tests/abi.py finds what breaks programs that were compiled before, and what is new."""
import shutil
import subprocess
import sys

import pytest

from drill import SECONDS, TOP

EDITS = {
    "a constant has another value": ("client/perseas.h", "PERSEAS_CREATE = 1,",
                                     "PERSEAS_CREATE = 7,",
                                     "constant PERSEAS_CREATE: 7, and was 1", "SOVERSION"),
    "a function is gone": ("client/perseas.h", "\nint perseas_close(", "\nint perseas_shut(",
                           "perseas_close", "SOVERSION"),
    "a member has another size": ("client/perseas.h", "uint64_t log_size;", "uint32_t log_size;",
                                  "log_size", "make abi"),
    "a function is new": ("client/perseas.h", "\nint perseas_close(",
                          "\nint perseas_shut(void);\nint perseas_close(", "perseas_shut",
                          "make abi"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_change_of_the_interface_is_named(edit, tmp_path):
    """In a copy of the headers."""
    name, old, new, says, advises = EDITS[edit]
    shutil.copytree(TOP / "client", tmp_path / "client", ignore=shutil.ignore_patterns("*.c"))
    (tmp_path / "tests").mkdir()
    shutil.copy(TOP / "tests/abi.py", tmp_path / "tests")
    header = tmp_path / name
    text = header.read_text()
    assert text.count(old) == 1
    header.write_text(text.replace(old, new))
    done = subprocess.run([sys.executable, tmp_path / "tests/abi.py"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
    assert done.returncode == 1
    assert says in done.stdout and advises in done.stdout, done.stdout
    assert done.stdout.endswith("1 passed, 1 failed\n")
