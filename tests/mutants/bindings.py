"""Edits of the bindings and of scripts, for run.py: a changed header of client/cpp is compiled with
the test that should find it, and a changed module of client/python replaces its like in a copy of
the package; a changed native*.c is compiled, and linked with the objects that are there. A changed
script of deploy/ is called by drills from a copy of that folder, and a changed file of
client/command or server/ is linked into a command or daemon that drills run.
Neither the tree nor what was built is changed.
"""
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

SECONDS = 300
CC = ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-w", "-fPIC", "-pthread", "-fvisibility=hidden"]
CXX = ["g++", "-std=c++17", "-O1", "-w", "-pthread"]
PACKAGE = pathlib.Path("build/python")
KINDS = ("cpp", "python", "drill")
# Folder of sources, the program that is linked of them, and the object of what is generated.
PROGRAMS = (("client/command/", "perseas", "completion.o"), ("server/", "perseasd", "page.o"))


def is_ours(finder):
    """cpp:NAME is tests/cpp/NAME.cpp; python:FILE::TEST is a test of tests/python, and
    drill:FILE::TEST one of tests/drills."""
    return finder.partition(":")[0] in KINDS


def what_fails(finder, file=None, text=None):
    """What the test says, with this text for that file: "passed", or how it failed."""
    kind, _, name = finder.partition(":")
    with tempfile.TemporaryDirectory(dir="build/mutants") as folder:
        return {"cpp": of_cpp, "python": of_python, "drill": of_drill}[kind](
            name, pathlib.Path(folder), file, text)


def put(root, folder, file, text):
    """A copy of the folder, below `root`, with the changed file in it."""
    shutil.copytree(folder, root)
    if file:
        (root / pathlib.Path(file).name if (root / pathlib.Path(file).name).exists()
         else root / "perseas" / pathlib.Path(file).name).write_text(text)


def private_libraries():
    return pathlib.Path("build/libperseas.libs").read_text().split()


def of_cpp(name, folder, file, text):
    put(folder / "cpp", "client/cpp", file, text)
    program = folder / name
    subprocess.run([*CXX, "-Iclient", "-I%s" % (folder / "cpp"), "tests/cpp/%s.cpp" % name, "-o",
                    program, "build/libperseas.a", *private_libraries()], check=True)
    return ended(["tests/cpp/run.py", program])


def link_native(folder, file, text):
    """The package's compiled module, with this text for one of its sources."""
    source, changed = folder / pathlib.Path(file).name, folder / "changed.o"
    source.write_text(text)
    subprocess.run([*CC, "-Iclient/python", "-Iclient", "-Idoc/examples", "-c", source, "-o",
                    changed], check=True)
    others = [path for path in PACKAGE.rglob("*.o") if path.stem != source.stem]
    module, = (folder / "python/perseas").glob("_native*.so")
    subprocess.run(["gcc", "-shared", "-pthread", *others, changed, "build/libperseas.a",
                    "-Wl,--exclude-libs,ALL", *private_libraries(), "-o", module], check=True)


def by_pytest(test, **more):
    return ended([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test],
                 PERSEAS_HANGING="60", **more)


def of_python(name, folder, file, text):
    is_native = bool(file) and file.endswith(".c")
    put(folder / "python", PACKAGE, None if is_native else file, text)
    if is_native:
        link_native(folder, file, text)
    return by_pytest("tests/python/" + name, PERSEAS_PYTHON=str((folder / "python").absolute()))


def link_program(folder, file, text):
    """A build folder like the real one, but for a command or daemon that has this text for its
    source."""
    room, name, more = next(each for each in PROGRAMS if file.startswith(each[0]))
    compiler, linker, libraries = map(
        shlex.split, pathlib.Path("build/mutants/flags").read_text().splitlines()[:3])
    made = folder / "build"
    made.mkdir()
    for path in pathlib.Path("build").iterdir():
        (made / path.name).symlink_to(path.absolute())
    source, changed = folder / pathlib.Path(file).name, folder / "changed.o"
    source.write_text(text)
    subprocess.run([*compiler, "-w", "-iquote", str(pathlib.Path(file).parent), "-Iclient", "-o",
                    changed, source], check=True)
    others = [pathlib.Path("build/obj", path).with_suffix(".o")
              for path in pathlib.Path(room).rglob("*.c") if str(path) != file]
    (made / name).unlink()
    subprocess.run([*linker, "-o", made / name, *others, "build/obj/" + more, changed,
                    "build/libperseas.a", *libraries], check=True)
    return made


def of_drill(name, folder, file, text):
    if file and not file.startswith("deploy/"):
        made = link_program(folder, file, text)
        return by_pytest("tests/drills/" + name, PERSEAS_BUILD=str(made.absolute()))
    shutil.copytree("deploy", folder / "deploy")
    if file:
        (folder / file).write_text(text)
    return by_pytest("tests/drills/" + name, PERSEAS_SCRIPTS=str(folder.absolute()))


def ended(words, **more):
    child = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                             env=dict(os.environ, **more), start_new_session=True)
    try:
        said, _ = child.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return "no end after %d s" % SECONDS
    if child.returncode == 0:
        return "passed"
    lines = [line for line in said.splitlines() if line.startswith(("not ok", "FAILED", "Fatal"))]
    return lines[0] if lines else "status %d" % child.returncode
