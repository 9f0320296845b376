"""The README's program, as it stands there, against three daemons."""
import os
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "bench"))

from cluster import Cluster  # noqa: E402

BUILD = TOP / "build"


def program():
    """The C block of the README."""
    blocks = re.findall(r"^```c\n(.*?)^```$", (TOP / "README.md").read_text(), re.M | re.S)
    assert len(blocks) == 1
    return blocks[0]


def compile_program(folder):
    source, binary = folder / "counter.c", folder / "counter"
    source.write_text(program())
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", str(source),
                    "-o", str(binary), "-I", str(TOP / "client"), "-L", str(BUILD), "-lperseas"],
                   check=True, timeout=60)
    return binary


def test_the_readmes_program_counts_its_runs(tmp_path):
    """Compiled with the shared library, run three times; in between the mirrors are restarted."""
    binary = compile_program(tmp_path)
    env = dict(os.environ, LD_LIBRARY_PATH=str(BUILD))
    with Cluster(BUILD, 3) as cluster:
        for number in range(1, 4):
            done = cluster.run(binary, cluster.tcp(), seconds=30, env=env)
            assert (done.returncode, done.stdout) == (0, "run %d\n" % number), done.stderr
            for mirror in cluster.mirrors:
                mirror.kill()
                mirror.start()


def test_the_readmes_program_says_why_it_cannot_run(tmp_path):
    """No mirror is there."""
    binary = compile_program(tmp_path)
    env = dict(os.environ, LD_LIBRARY_PATH=str(BUILD))
    done = subprocess.run([str(binary), "127.0.0.1:1"], env=env, text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert "127.0.0.1:1" in done.stderr
