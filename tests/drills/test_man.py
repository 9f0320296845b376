"""The manual pages: complete and valid roff."""
import os
import re
import shutil
import subprocess
import sys

import pytest

from drill import BUILD, SECONDS, TOP, run_command


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Returns {"perseas.1": its path}."""
    folder = tmp_path_factory.mktemp("man")
    subprocess.run([sys.executable, str(TOP / "deploy/man.py"), "--build", str(BUILD), "--output",
                    str(folder)], check=True, timeout=SECONDS)
    return {path.name: path for path in folder.glob("man?/*")}


def needs(program):
    if not shutil.which(program) and not os.environ.get("CI"):
        pytest.skip("there is no " + program)


def text_of(path):
    """Returns a page's text as a reader sees it, in one line, without hyphens of line breaks."""
    done = subprocess.run(["groff", "-man", "-Tascii", "-P-c", "-rHY=0", str(path)], check=True,
                          text=True, stdout=subprocess.PIPE, timeout=SECONDS)
    return re.sub(r"\s+", " ", re.sub(r".\x08", "", done.stdout))


def test_everything_has_a_page(pages):
    """The commands of --help, the exported functions, the programs and the daemon's file."""
    listed = run_command("--help").out.split("Commands")[1].split("\n\n")[0]
    verbs = re.findall(r"^  (\w+)  ", listed, re.M)
    symbols = subprocess.run(["nm", "-D", "--defined-only", str(BUILD / "libperseas.so")],
                             check=True, text=True, stdout=subprocess.PIPE, timeout=SECONDS).stdout
    functions = re.findall(r" T (perseas_\w+)", symbols)
    assert len(verbs) > 10 and len(functions) > 20
    expected = {"perseas.1", "libperseas.3", "perseas.hpp.3", "librvm-perseas.3",
                "librds-perseas.3",
                "perseasd.conf.5", "perseasd.8", "perseas-rxe.8", "perseas-power.8"}
    expected |= {"perseas-%s.1" % verb for verb in verbs} | {"%s.3" % name for name in functions}
    assert set(pages) == expected


def test_the_page_of_rvm_has_all_of_it(pages):
    """Every function that its library exports, every code, and the differences from RVM."""
    needs("groff")
    text = text_of(pages["librvm-perseas.3"])
    symbols = subprocess.run(["nm", "-D", "--defined-only", str(BUILD / "librvm-perseas.so")],
                             check=True, text=True, stdout=subprocess.PIPE, timeout=SECONDS).stdout
    functions = re.findall(r" T (rvm_\w+)", symbols)
    assert len(functions) > 40
    for words in (*("%s(" % name for name in functions), "#define RVM_EVM_OVERLAP 226",
                  "Differences from RVM", "RVM_ETID, RVM_ENOT_MAPPED, RVM_ETOO_BIG",
                  "rvm_region_t;", "tot_trans_overlap"):
        assert words in text, words


def test_the_page_of_rds_has_all_of_it(pages):
    """Every function that its library exports, every code, and the differences from RDS."""
    needs("groff")
    text = text_of(pages["librds-perseas.3"])
    symbols = subprocess.run(["nm", "-D", "--defined-only", str(BUILD / "librds-perseas.so")],
                             check=True, text=True, stdout=subprocess.PIPE, timeout=SECONDS).stdout
    functions = re.findall(r" T (\w+)", symbols)
    assert len(functions) > 20
    for words in (*("%s(" % name for name in functions), "#define ENO_ROOM (-9)",
                  "#define RVM_ESEGMENT_HDR 2000", "Differences from RDS", "intentionList_t;",
                  "RVM_EVM_OVERLAP, RVM_EOVERLAP"):
        assert words in text, words


def test_no_page_has_a_warning(pages):
    """Neither from groff nor from man."""
    needs("groff")
    needs("man")
    env = dict(os.environ, LC_ALL="C.UTF-8", MANWIDTH="80")
    for line in (["groff", "-ww", "-man", "-Tutf8", "-z"], ["man", "--warnings", "-l"]):
        done = subprocess.run(line + [str(path) for path in pages.values()], env=env, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, timeout=SECONDS)
        assert (done.returncode, done.stderr) == (0, "")


def test_every_page_can_be_found_by_what_it_is_about(pages):
    """lexgrog reads NAME as whatis and apropos do."""
    needs("lexgrog")
    done = subprocess.run(["lexgrog", *map(str, pages.values())], text=True,
                          stdout=subprocess.PIPE, timeout=SECONDS)
    found = dict(re.findall(r'^\S*/([^/:]+): "(\S+) - \S', done.stdout, re.M))
    assert done.returncode == 0
    assert found == {name: name.rsplit(".", 1)[0] for name in pages}


def test_a_page_of_a_command_has_what_its_help_has(pages):
    """Options, exit statuses and examples of perseas verify."""
    needs("groff")
    text = text_of(pages["perseas-verify.1"])
    for words in ("[--repeat SECONDS | --repair [--wait SECONDS]] [--json]", "EXAMPLES",
                  "--repeat SECONDS Verifies again", "EXIT STATUS 0 done, or the answer is yes 1",
                  "SEE ALSO"):
        assert words in text, text


def test_the_page_of_the_file_has_what_may_stand_in_it(pages):
    """Command-line-only options are on the daemon's page only."""
    term = re.compile(r'^\.B "(?:\\-h, )?(?:\\-\\-)?([a-z\\-]+)', re.M)
    terms = {name: set(term.findall(pages[name].read_text()))
             for name in ("perseasd.conf.5", "perseasd.8")}
    line = {name.replace("-", "\\-") for name in ("config", "boot-id", "check", "metrics-help",
                                                  "help", "version")}
    assert "spin\\-us" in terms["perseasd.conf.5"]
    assert line | terms["perseasd.conf.5"] == terms["perseasd.8"]
    assert not line & terms["perseasd.conf.5"]


def test_a_page_of_a_function_has_its_errors_and_threads(pages):
    """perseas_set_range has its own errors and not those of other functions."""
    needs("groff")
    text = text_of(pages["perseas_set_range.3"])
    for words in ("int perseas_set_range(perseas_tx_t *tx, const void *addr, size_t len);",
                  "PERSEAS_ERANGE (-19) The range is not inside a mapped segment.",
                  "ERANGE (not wholly inside one mapped segment)", "RETURN VALUE", "THREADS"):
        assert words in text, text
    assert "PERSEAS_EQUORUM" not in text
    assert "struct perseas_stat {" in text_of(pages["perseas_stat.3"])


def test_a_function_without_a_description_is_an_error(tmp_path):
    """The header has such a function; no page is written for it."""
    for name in ("deploy", "client", "client/rvm", "client/rds"):
        (tmp_path / name).mkdir()
    for name in ("deploy/man.py", "deploy/perseas-rxe", "deploy/nut/perseas-power", "VERSION",
                 *(path.relative_to(TOP) for path in (*TOP.glob("client/perseas*.h"),
                                                      *TOP.glob("client/r[dv][sm]/r*.h")))):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(TOP / name, tmp_path / name)
    header = tmp_path / "client/perseas.h"
    header.write_text(header.read_text().replace("#ifdef __cplusplus\n}",
                                                 "/* Errors: EINVAL. */\n"
                                                 "int perseas_bare(void);\n#ifdef __cplusplus\n}"))
    done = subprocess.run([sys.executable, str(tmp_path / "deploy/man.py"), "--build", str(BUILD),
                           "--output", str(tmp_path / "man")], text=True, stderr=subprocess.PIPE,
                          timeout=SECONDS)
    assert done.returncode == 1 and "perseas_bare has no description" in done.stderr
