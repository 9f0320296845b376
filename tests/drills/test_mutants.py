"""tests/mutants/run.py: a mutant whose test is skipped is neither killed nor survives."""
import argparse
import importlib.util
import shlex
import sys

import pytest

from drill import TOP

FOLDER = TOP / "tests/mutants"


@pytest.fixture
def mutants(monkeypatch, tmp_path):
    """The module, in its own tree with one file of the product."""
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    spec = importlib.util.spec_from_file_location("mutants_run", FOLDER / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.chdir(tmp_path)
    module.WORK.mkdir(parents=True)
    (tmp_path / "product.c").write_text("old\n")
    return module


class Programs:
    """Replaces the compiler. The program of each test is a script that appends its name to the file
    `runs`, and in its n-th run executes the n-th of the given commands."""

    def __init__(self, folder, commands):
        self.folder, self.commands = folder, commands

    def object(self, mutant, folder):
        return folder / "changed.o"

    def program(self, finder, folder, changed, whole):
        path = self.folder / finder
        path.write_text("#!/bin/sh\necho %s >>runs\nset -- %s\nshift $(($(grep -c %s runs) - 1))\n"
                        "eval \"$1\"\n" % (finder, shlex.join(self.commands[finder]), finder))
        path.chmod(0o755)
        return path


SKIPS = "echo 'ok 1 - one # SKIP busy'"
PASSES = "echo 'ok 1 - one'"
FAILS = "echo 'not ok 1 - one'; exit 1"


def try_all(mutants, folder, capsys, **commands):
    """Tries a mutant for each test. Returns the runner's status, its last line, all lines, and the
    tests in the order in which they ran."""
    args = argparse.Namespace(day=60, jobs=1)
    run = mutants.Run(Programs(folder, commands), args)
    edits = []
    for finder in commands:
        edit = mutants.Mutant("edit-of-" + finder, "table:1")
        edit.fields = {"rule": "I1", "file": "product.c", "found by": finder}
        edit.old, edit.new = ["old"], ["new"]
        edits.append(edit)
    run.try_all(edits)
    status, text = run.finish(), capsys.readouterr().out
    return status, text.splitlines()[-1], text, (folder / "runs").read_text().split()


def test_an_edit_whose_test_is_skipped_is_tried_again_alone(mutants, tmp_path, capsys):
    """It runs after the other test has ended, which takes a while. The second run kills the
    mutant."""
    status, last, text, ran = try_all(mutants, tmp_path, capsys,
                                      test_a=[SKIPS, "[ -e ended ] || exit 0; " + FAILS],
                                      test_b=["sleep 0.3; touch ended; " + FAILS])
    assert (status, last) == (0, "2 passed, 0 failed"), text
    assert ran == ["test_a", "test_b", "test_a"]


def test_an_edit_whose_test_is_skipped_twice_is_undecided(mutants, tmp_path, capsys):
    """The run fails, and names the mutant at its end."""
    status, last, text, ran = try_all(mutants, tmp_path, capsys, test_a=[SKIPS, SKIPS])
    assert (status, last) == (1, "0 passed, 1 failed"), text
    assert ran == ["test_a"] * 2
    failed, = [line for line in text.splitlines() if line.startswith("FAILED")]
    assert "edit-of-test_a" in failed and "UNDECIDED: skipped" in failed


def test_an_edit_that_passes_the_second_time_survives(mutants, tmp_path, capsys):
    """The earlier skip does not hide that."""
    status, last, text, _ = try_all(mutants, tmp_path, capsys, test_a=[SKIPS, PASSES])
    assert (status, last) == (1, "0 passed, 1 failed") and "SURVIVES test_a" in text


def test_edits_share_fields_up_to_the_next_paragraph(mutants, tmp_path):
    """Three mutants: one with the shared fields, one with its own, and one of the next
    paragraph."""
    table = tmp_path / "some.mutants"
    table.write_text("# About.\n\nrule: I1\nfile: a.c\nfound by: test_a\n\n"
                     "[one]\n-old\n\n[two]\nrule: I2\n-old\n\n"
                     "rule: I3\nfile: b.c\n\n[three]\nfound by: test_b\n-old\n")
    read = mutants.read_table(table)
    assert [(m.name, m.fields["rule"], m.fields["file"], m.finders) for m in read] == [
        ("one", "I1", "a.c", ["test_a"]), ("two", "I2", "a.c", ["test_a"]),
        ("three", "I3", "b.c", ["test_b"])]
    table.write_text("rule: I1\n-old\n")
    with pytest.raises(mutants.Mistake, match="has no name"):
        mutants.read_table(table)
