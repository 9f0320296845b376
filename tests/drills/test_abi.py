"""tests/abi.py finds changes of the interface: those that break compiled programs, and new
functions."""
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
    "a constant of RVM has another value": ("client/rvm/rvm.h", "#define TRUNCATE 50",
                                            "#define TRUNCATE 60",
                                            "constant TRUNCATE: 60, and was 50", "SOVERSION"),
    "a code of RDS has another value": ("client/rds/rds.h", "#define ENO_ROOM (-9)",
                                        "#define ENO_ROOM (-10)",
                                        "constant ENO_ROOM: -10, and was -9", "SOVERSION"),
    "a name for a code of RDS is gone": ("client/rds/rds.h",
                                         "#define EBAD_LIST_LENGTH EBAD_LIST\n", "",
                                         "constant EBAD_LIST_LENGTH: not there", "SOVERSION"),
    "a variable of RDS is gone": ("client/rds/rds_private.h",
                                  "extern unsigned long NRegionDefs;\n", "", "NRegionDefs",
                                  "SOVERSION"),
    "the loader's function is gone": ("client/rds/rvm_segment.h", "rvm_return_t rvm_load_segment(",
                                      "rvm_return_t rvm_fetch_segment(", "rvm_load_segment",
                                      "SOVERSION"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_change_of_the_interface_is_named(edit, tmp_path):
    """Edits a copy of the headers."""
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
    assert done.stdout.endswith("2 passed, 1 failed\n")
