"""perseas completion: real shells complete command lines with its output."""
import os
import shutil
import subprocess

import pytest

from drill import OK, SECONDS, USAGE, run_command
from test_command import VERBS


def shell(program, script, *words, **keywords):
    if not shutil.which(program) and not os.environ.get("CI"):
        pytest.skip("there is no " + program)
    done = subprocess.run([program, *script, *map(str, words)], stdin=subprocess.DEVNULL,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=SECONDS, **keywords)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.splitlines()


# The words that bash splits a command line into; the last one is completed.
BASH = """
. "$1"
shift
[[ $(complete -p perseas) == "complete -F _perseas perseas" ]] || exit 9
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_perseas
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def bash(tmp_path):
    """bash(words...) returns the completions of the last word, in a folder with a file and a
    folder."""
    (tmp_path / "perseas").write_text(run_command("completion", "bash").out)
    here = tmp_path / "here"
    (here / "folder").mkdir(parents=True)
    (here / "a file").touch()

    def complete(*words):
        found = shell("bash", ["--norc", "-c", BASH, "bash"], tmp_path / "perseas", "perseas",
                      *words, cwd=here)
        return sorted(word for word in found if word)
    return complete


def test_bash_completes_commands_and_options(bash):
    """Also after options and mirrors, which bash splits at colons and equals signs."""
    assert bash("") == sorted(VERBS)
    assert bash("re") == ["recover", "restore"]
    assert bash("--json", "re") == ["recover", "restore"]
    assert bash("--") == ["--help", "--version"]
    assert bash("verify", "s", "--r") == ["--repair", "--repeat"]
    mirrors = ["m1", ":", "7700,m2", ":", "7700"]
    assert bash("verify", "s", *mirrors, "--j") == ["--json"]
    assert bash("--mirrors", *mirrors, "st") == ["status"]
    assert bash("--mirrors", "=", *mirrors, "st") == ["status"]
    help_of = run_command("drop", "--help").out
    assert bash("drop", "--") and all(word + " " in help_of for word in bash("drop", "--"))


def test_bash_completes_what_stands_at_each_place(bash):
    """Files, folders, changes of the roster, topics; and nothing where no completion is known."""
    files = ["a file", "folder"]
    assert bash("restore", "") == files
    assert bash("--acks", "2", "restore", "a") == ["a file"]
    assert bash("snapshot", "--check", "") == files
    assert bash("snapshot", "--check", "=") == files
    assert bash("snapshot", "s", "--to", "=", "f") == ["folder"]
    assert bash("doctor", "--memory-dir", "") == ["folder"]
    assert bash("roster", "re") == ["remove", "replace"]
    assert bash("help", "ex") == ["exit-codes"]
    assert bash("completion", "") == ["bash", "zsh"]
    for words in (["create", ""], ["restore", "a file", ""], ["create", "s", "--acks", ""],
                  ["frobnicate", ""], ["status", "--mirrors", ""]):
        assert bash(*words) == [], words


# Types lines into a new shell, and waits for the completion of a tab.
ZSH = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1=ready: fpath=($1 \\$fpath) TERM=dumb; autoload -U compinit"
zpty -w shell "compinit -D -u; cd $2; print is ''set"
zpty -r shell out '*is set*'
shift 2
while (($#)); do
	zpty -w -n shell "$1"$'\\t'
	zpty -r shell out "*$2*"
	zpty -w -n shell $'\\x15'
	shift 2
done
zpty -d shell
"""


def test_zsh_completes_commands_options_and_files(tmp_path):
    """By compinit, which finds the file in its path; and sourced."""
    text = run_command("completion", "zsh").out
    (tmp_path / "_perseas").write_text(text)
    (tmp_path / "backup").touch()
    shell("zsh", ["-n", tmp_path / "_perseas"])
    found = shell("zsh", ["-f", "-c", "autoload -U compinit; compinit -D -u; . $1; "
                          "print $_comps[perseas]", "zsh"], tmp_path / "_perseas")
    assert found == ["_perseas"]
    shell("zsh", ["-f", "-c", ZSH, "zsh"], tmp_path, tmp_path,
          "perseas snap", "perseas snapshot ",
          "perseas snapshot s --fr", "perseas snapshot s --from=",
          "perseas restore ba", "perseas restore backup ",
          "perseas roster rep", "perseas roster replace ")


def test_a_shell_that_is_not_known_is_refused():
    """Also refuses a missing shell. The command is not in the list of commands."""
    for words in (["completion"], ["completion", "fish"]):
        done = run_command(*words)
        assert done.status == USAGE and "perseas completion bash" in done.err, done
    assert run_command("completion", "--help").status == OK
    assert "completion" not in run_command("--help").out
