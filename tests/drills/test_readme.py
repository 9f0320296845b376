"""The README's first five minutes, exactly as written, and its program against three daemons."""
import os
import re

from drill import BUILD, SECONDS, TOP
from cluster import Cluster
from guide import EXAMPLES, blocks, compile_c, follow, root, shell  # noqa: F401

README = TOP / "README.md"


def write_program(path):
    """Writes the C block of the README to a file."""
    source, = [block.text for block in blocks(README) if block.kind == "c"]
    path.write_text(source)
    return path


def test_the_readme_shows_what_happens(shell, tmp_path):  # noqa: F811
    """Runs every command of its fenced blocks, in order."""
    write_program(tmp_path / "counter.c")
    follow(shell(), README)


def test_the_readmes_program_counts_its_runs(tmp_path, root):  # noqa: F811
    """Compiled with the shared library and run three times, with restarts of the mirrors between.
    Then the same program in C++ continues."""
    binary = tmp_path / "counter"
    compile_c(write_program(tmp_path / "counter.c"), binary, root)
    env = dict(os.environ, LD_LIBRARY_PATH=str(BUILD))
    with Cluster(BUILD, 3) as cluster:
        for number in range(1, 4):
            done = cluster.run(binary, cluster.tcp(), seconds=SECONDS, env=env)
            assert (done.returncode, done.stdout) == (0, "run %d\n" % number), done.stderr
            for mirror in cluster.mirrors:
                mirror.kill()
                mirror.start()
        compile_c(EXAMPLES / "counter.cpp", tmp_path / "counter-cpp", root)
        done = cluster.run(tmp_path / "counter-cpp", cluster.tcp(), seconds=SECONDS, env=env)
        assert (done.returncode, done.stdout) == (0, "run 4\n"), done.stderr
        for mirror in cluster.mirrors:
            mirror.kill()
        done = cluster.run(binary, cluster.tcp(), seconds=SECONDS, env=env)
        assert done.returncode == 1
        assert cluster.mirrors[0].tcp in done.stderr


def test_the_readme_says_that_there_is_no_release_until_there_is_one():
    released = re.findall(r"^## \[?\d", (TOP / "CHANGELOG.md").read_text(), re.M)
    assert ("There is no release yet" in README.read_text()) == (not released)
