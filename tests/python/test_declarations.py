"""That the package is not older than the headers: every function, member and code that these have
is there, since it is taken from them whenever the package is built.
"""
import dataclasses
import inspect
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


# What the package does not call, and why.
NOT_CALLED = {
    "perseas_commit": "perseas_commit_token gives the token, too",
    "perseas_message": "perseas_error copies the sentence, which stays as it is",
    "perseas_error_name": "classes have the names, as the test of the codes holds them",
    "perseas_set_progress": "a function of the whole process, called inside of opens: see events",
}


def test_every_function_of_the_library_is_called():
    """By the package, or there is a reason: a function that comes needs either."""
    folder = TOP / "client/python"
    native = "".join(re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
                     for path in folder.glob("native*.c"))
    package = "".join(path.read_text() for path in folder.glob("perseas/*.py"))
    called = set(re.findall(r"\b(perseas_[a-z_]+)\(", native)) | set(
        re.findall(r"lib\.(perseas_[a-z_]+)\(", package))
    assert exported() - called == set(NOT_CALLED)
    ours = declarations.functions((folder / "native.h").read_text())
    passed = set(re.findall(r"\blib\.(ps_py_[a-z_]+)\b", package))
    assert len(ours) > 60 and ours - passed == set()


def documented():
    """(name, object) of whatever the package offers: functions and classes, and what is in these.
    A dataclass's members are those of the C structure."""
    for name in perseas.__all__:
        thing = getattr(perseas, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            yield name, thing
        for inner, value in vars(thing).items() if inspect.isclass(thing) else ():
            value = getattr(value, "__func__", value)
            if not inner.startswith("_") and (inspect.isfunction(value)
                                              or isinstance(value, property)):
                yield "%s.%s" % (name, inner), value


def test_whatever_is_offered_is_documented():
    """By itself, and not by a class that it is made from; and a function that asks the library
    says which errors there are, or the class does for all of its functions."""
    names = dict(documented())
    assert len(names) > 120 and "Store.map" in names and "Transaction.lock" in names
    assert [name for name, thing in names.items() if len((thing.__doc__ or "").split()) < 3] == []
    silent = [name for name, thing in names.items()
              if not inspect.isclass(thing) and asks_the_library(thing)
              and "rror" not in thing.__doc__
              and "rrors" not in (getattr(perseas, name.partition(".")[0]).__doc__ or "")]
    assert silent == []


# What a parameter of such a name is a number of.
UNITS = {"timeout": "second", "size": "byte", "length": "byte", "offset": "byte", "rate": "byte"}


def test_what_is_a_number_has_a_unit():
    """In the words of its function, or of the class that it is of."""
    numbers = [(name, thing, unit) for name, thing in documented() if inspect.isfunction(thing)
               for parameter in inspect.signature(thing).parameters
               for word, unit in UNITS.items() if word in parameter]
    assert len(numbers) >= 10
    assert [name for name, thing, unit in numbers
            if unit not in thing.__doc__
            and unit not in (getattr(perseas, name.partition(".")[0]).__doc__ or "")] == []


def asks_the_library(thing):
    source = inspect.getsource(thing.fget if isinstance(thing, property) else thing)
    return re.search(r"_check\(|\bcheck\(|raise |\bawait\b", source) is not None


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
    assert {name.lower() for name in flags} | {"tracked", "level_0"} == set(options.FLAGS)


def test_the_types_are_checked():
    """mypy, strictly, over the package and what is shown as examples."""
    folder = TOP / "client/python"
    done = subprocess.run(["mypy", "--strict", "--cache-dir", str(BUILD / "mypy"), "perseas",
                           *sorted(str(path) for path in folder.glob("examples/*.py"))],
                          cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
