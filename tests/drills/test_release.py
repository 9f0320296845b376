"""deploy/release.sh: what `make release` refuses, and what it builds."""
import hashlib
import os
import shutil
import subprocess

import pytest

from drill import SECONDS, TOP

CHANGELOG = ("# Changelog\n\n## [Unreleased]\n- later\n\n## [1.2.0]\n\n### Added\n- this\n\n"
             "## [1.1.0]\n- old\n")
AUTHOR = ("-c", "user.name=x", "-c", "user.email=x@x.invalid")


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "VERSION").write_text("1.2.0\n")
    (tmp_path / "tests/deb").mkdir(parents=True)
    agree = tmp_path / "tests/deb/agree.py"
    agree.write_text("#!/bin/sh\n")
    agree.chmod(0o755)
    shutil.copy(TOP / "tests/night.py", tmp_path / "tests")
    (tmp_path / "tests/unstable").write_text("# none\n")
    for words in (("init", "-q"), ("add", "-A"),
                  (*AUTHOR, "commit", "-qm", "x")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, timeout=SECONDS)
    return tmp_path


def release(tree, *words, **environment):
    return subprocess.run([TOP / "deploy/release.sh", *words], cwd=tree, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=SECONDS,
                          env={**os.environ, "NIGHT": "lint", **environment})


def record(tree, reason=""):
    """Records that the suite `lint` passed by night, or why the machine could not run it."""
    words = "import night; night.record('lint', %r)" % reason
    subprocess.run(["/usr/bin/python3", "-c", words], cwd=tree, check=True, timeout=SECONDS,
                   env={**os.environ, "PYTHONPATH": str(tree / "tests"),
                        "PYTHONDONTWRITEBYTECODE": "1"})
    commit(tree)


def commit(tree):
    for words in (("add", "-A"), (*AUTHOR, "commit", "-qm", "x")):
        subprocess.run(["git", *words], cwd=tree, check=True, timeout=SECONDS)


def test_the_notes_are_the_section_of_the_version(tree):
    assert release(tree, "notes", "1.2.0").stdout == "### Added\n- this\n\n"
    assert release(tree, "notes", "1.2").stdout == ""


def test_what_is_not_ready_is_refused_by_name(tree):
    record(tree)
    assert release(tree, "check", "1.2.0").returncode == 0
    refused = release(tree, "check", "1.3.0")
    assert refused.returncode == 1 and "VERSION does not say 1.3.0" in refused.stderr
    (tree / "VERSION").write_text("1.3.0\n")
    refused = release(tree, "check", "1.3.0")
    assert refused.returncode == 1 and "not committed" in refused.stderr
    subprocess.run(["git", *AUTHOR, "commit", "-qam", "x"], cwd=tree, check=True, timeout=SECONDS)
    refused = release(tree, "check", "1.3.0")
    assert refused.returncode == 1 and "has no section '## [1.3.0]'" in refused.stderr


def test_a_release_needs_a_whole_night(tree):
    """A suite did not run, could not run, passed; then a drill is unstable."""
    refused = release(tree, "check", "1.2.0")
    assert refused.returncode == 1 and "lint: has not passed on this tree" in refused.stderr
    record(tree, "not run: no root")
    refused = release(tree, "check", "1.2.0")
    assert refused.returncode == 1 and "lint: not run: no root" in refused.stderr
    assert release(tree, "check", "1.2.0", NOT_RUN="1").returncode == 0
    release(tree, "collect", "1.2.0", "out", "VERSION")
    notes = (tree / "out/NOTES.md").read_text()
    assert notes.endswith("### Not tested\n- lint: not run: no root\n")
    shutil.rmtree(tree / "out")
    record(tree)
    assert release(tree, "check", "1.2.0").returncode == 0
    (tree / "tests/unstable").write_text("tests/drills/test_a.py::test_it 2026-01-01 the machine\n")
    commit(tree)
    refused = release(tree, "check", "1.2.0")
    assert refused.returncode == 1 and "tests/unstable lists drills" in refused.stderr


def test_checksums_are_of_all_that_is_published(tree):
    (tree / "a.tar.gz").write_bytes(b"tarball")
    done = release(tree, "collect", "1.2.0", "out/perseas-1.2.0", "a.tar.gz")
    assert done.returncode == 0, done.stderr
    folder = tree / "out/perseas-1.2.0"
    sums = dict(reversed(line.split("  ")) for line in
                (folder / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {"a.tar.gz", "NOTES.md"}
    for name, value in sums.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == value
    assert "gpg" in done.stdout


@pytest.mark.parametrize("kind", ("dsc", "changes"))
def test_what_a_list_of_sources_names_is_there(kind, tree):
    """A .dsc is useless without the tarball that it names."""
    source = tree / "x_1.orig.tar.gz"
    source.write_bytes(b"source")
    (tree / ("x_1." + kind)).write_text(
        "Format: 3.0\nChecksums-Sha256:\n %s 6 x_1.orig.tar.gz\nFiles:\n %s 6 other\n" %
        (hashlib.sha256(b"source").hexdigest(), "0" * 64))
    words = ("collect", "1.2.0", "out", "x_1." + kind)
    done = release(tree, *words)
    assert done.returncode == 1 and "x_1.%s lists what is not here" % kind in done.stderr
    done = release(tree, *words, "x_1.orig.tar.gz")
    assert done.returncode == 0, done.stderr
    source.write_bytes(b"another")
    assert release(tree, *words, "x_1.orig.tar.gz").returncode == 1
