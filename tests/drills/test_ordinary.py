"""The copy of the tree for an ordinary user, made while other suites write to the tree."""
import os
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import ordinary  # noqa: E402


@pytest.fixture(name="copied")
def fixture_copied(tmp_path, monkeypatch):
    """copied(act) returns what a copy contains if act(folder) runs after a folder's names were
    read."""
    tree = tmp_path / "tree"
    for name in ("build/a/kept", "build/b/kept", "build/c"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name)
    (tree / "build/link").symlink_to("c")
    chosen = ordinary.left

    def copied(act):
        def left(folder, names):
            act(pathlib.Path(folder))
            return chosen(folder, names)

        monkeypatch.setattr(ordinary, "left", left)
        monkeypatch.chdir(tree)
        ordinary.copy_tree(tmp_path / "copy")
        return sorted(str(path.relative_to(tmp_path / "copy"))
                      for path in (tmp_path / "copy").rglob("*") if not path.is_dir())

    return copied


def test_what_vanishes_while_it_is_copied_is_left_out(copied):
    """A file, a link, and a folder with a file vanish; the entries next to and after them are
    copied."""
    def remove(folder):
        if folder == pathlib.Path("build"):
            (folder / "c").unlink()
            (folder / "link").unlink()
            shutil.rmtree(folder / "a")

    assert copied(remove) == ["build/b/kept"]


def test_what_cannot_be_copied_for_another_reason_fails(copied):
    """A file has become a folder; a link vanished next to it."""
    def change(folder):
        if folder == pathlib.Path("build"):
            (folder / "link").unlink()
            (folder / "c").unlink()
            os.mkdir(folder / "c")

    with pytest.raises(shutil.Error) as failed:
        copied(change)
    assert len(failed.value.args[0]) == 1 and "build/c" in str(failed.value)
