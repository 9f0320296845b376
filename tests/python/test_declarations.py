"""That the package is not older than the headers: every function, member and code that these have
is there, since it is taken from them whenever the package is built.
"""
import dataclasses
import re
import shutil
import subprocess
import sys

from drill import BUILD, TOP
import perseas
from perseas import errors, figures, options
from perseas._native import ffi, lib

sys.path.insert(0, str(TOP / "client/python"))
import declarations  # noqa: E402


def exported():
    """The functions of libperseas.so, as client/perseas.map has them."""
    text = subprocess.run(["nm", "-D", "--defined-only", str(BUILD / "libperseas.so")], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return set(re.findall(r" T (perseas_[a-z_]+)", text))


def test_every_function_of_the_library_is_declared():
    names = exported()
    assert len(names) > 60
    assert names - declarations.functions(declarations.declarations()) == set()
    assert [name for name in names if not hasattr(lib, name)] == []


def test_a_function_that_comes_is_declared(tmp_path):
    """The headers are read each time: one that is new in them is there, and needs no edit here."""
    client = tmp_path / "client"
    (client / "python").mkdir(parents=True)
    for path in (*(TOP / "client").glob("perseas*.h"), TOP / "client/python/native.h",
                 TOP / "client/python/declarations.py"):
        shutil.copy(path, client / path.relative_to(TOP / "client"))
    header = client / "perseas_track.h"
    header.write_text(header.read_text().replace(
        "#endif", "struct perseas; int perseas_brand_new(struct perseas *p, int x);\n#endif"))
    text = subprocess.run([sys.executable, "-c", "import declarations;"
                           "print(declarations.declarations())"], check=True, text=True,
                          cwd=client / "python", stdout=subprocess.PIPE).stdout
    assert "perseas_brand_new" in declarations.functions(text)


def test_every_code_has_a_class():
    codes = re.findall(r"X\(PERSEAS_(E[A-Z]+), (-\d+),", (TOP / "client/perseas.h").read_text())
    assert [(name, kind.code) for name, kind in errors.CLASSES.items()] == [
        (name, int(code)) for name, code in codes]
    for name, kind in errors.CLASSES.items():
        assert kind.name == "PERSEAS_" + name and issubclass(kind, perseas.PerseasError)
        assert kind.__name__ in perseas.__all__


def test_dataclasses_have_the_members_of_the_structs():
    for kind, struct in ((figures.Stat, "perseas_stat"), (figures.HeapStat, "perseas_heap_stat"),
                         (figures.MirrorStat, "perseas_mirror_stat"),
                         (figures.SegmentInfo, "perseas_segment_info"),
                         (figures.StandbyStat, "perseas_standby_stat"),
                         (figures.StandbyMirror, "perseas_standby_mirror"),
                         (figures.Event, "perseas_event")):
        assert [field.name for field in dataclasses.fields(kind)] == [
            name for name, _ in ffi.typeof("struct " + struct).fields]


def test_every_option_can_be_given():
    members = {name for name, _ in ffi.typeof("struct perseas_options").fields}
    names = set(options.Options.__annotations__)
    assert members - set(options.HIDDEN) == names - set(options.FLAGS)
    flags = re.findall(r"^\t?PERSEAS_([A-Z_]+) = \d+[,]?", re.search(
        r"enum perseas_flag \{(.*?)\};", (TOP / "client/perseas.h").read_text(), re.S)[1], re.M)
    assert {name.lower() for name in flags} | {"tracked"} == set(options.FLAGS)


def test_the_types_are_checked():
    """mypy, strictly, over the package and what is shown as examples."""
    folder = TOP / "client/python"
    done = subprocess.run(["mypy", "--strict", "--cache-dir", str(BUILD / "mypy"), "perseas",
                           *sorted(str(path) for path in folder.glob("examples/*.py"))],
                          cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
