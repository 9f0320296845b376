"""perseas-expendable, which a cluster manager runs before it ends a mirror: it permits only mirrors
that no store would miss."""
import subprocess

import pytest

from drill import BUILD, OK, SCRIPTS, SECONDS, mirror_list, run_command

SCRIPT = SCRIPTS / "container/perseas-expendable"


def environment(mirror, daemons):
    return {"PATH": "%s:/usr/bin:/bin" % BUILD.resolve(), "PERSEAS_SELF": mirror.address,
            "PERSEAS_MIRRORS": mirror_list(daemons)}


def create(store, daemons):
    assert run_command("create", store, mirrors=daemons).status == OK


def ask(mirror, daemons, seconds=0):
    done = subprocess.run([SCRIPT, str(seconds)], env=environment(mirror, daemons), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          timeout=SECONDS)
    return done.returncode, done.stdout


def test_any_one_of_three_may_go(mirrors):
    daemons = mirrors(3)
    assert ask(daemons[0], daemons) == (0, "")
    for store in ("one", "two"):
        create(store, daemons)
    assert [ask(each, daemons) for each in daemons] == [(0, "")] * 3


def test_none_goes_while_another_one_is_away(mirrors, owner):
    """A store on other mirrors only does not matter. A mirror that does not answer may not go."""
    daemons = mirrors(4)
    create("elsewhere", daemons[3:])
    create("store", daemons[:3])
    owner("store", daemons[:3])
    assert ask(daemons[0], daemons) == (0, "")
    daemons[1].lose_memory()
    status, said = ask(daemons[0], daemons)
    assert status == 1 and "waits: store 'store': can commit: yes" in said
    assert daemons[0].address + " would be missed after 0 s, too" in said
    status, said = ask(daemons[1], daemons)
    assert status == 1 and "waits: it does not tell of its stores" in said


def test_every_store_is_asked_for(mirrors):
    """Stores before and after it in the list are complete; one store has lost a mirror."""
    daemons = mirrors(4)
    create("a-well", daemons[:3])
    create("b-hurt", [daemons[0], *daemons[2:]])
    create("c-well", daemons[:3])
    daemons[3].kill9()
    status, said = ask(daemons[0], daemons[:3])
    assert status == 1 and "waits: store 'b-hurt'" in said, said


def test_it_waits_until_the_other_one_is_copied(mirrors, owner):
    daemons = mirrors(3)
    create("store", daemons)
    owner("store", daemons)
    daemons[1].lose_memory()
    process = subprocess.Popen([SCRIPT, str(SECONDS)], env=environment(daemons[0], daemons),
                               text=True, stdout=subprocess.PIPE)
    assert "waits: store 'store'" in process.stdout.readline()
    daemons[1].restart()
    process.stdout.read()
    process.stdout.close()
    assert process.wait(SECONDS) == 0


def test_a_store_that_nobody_tells_of_keeps_its_mirror(mirrors):
    daemons = mirrors(2)
    create("store", daemons[:1])
    status, said = ask(daemons[0], daemons[1:])
    assert status == 1 and "waits: store 'store': no mirror answers" in said


@pytest.mark.parametrize("words", [[], ["soon"], ["-1"]])
def test_it_says_how_it_is_called(words):
    done = subprocess.run([SCRIPT, *words], text=True, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2 and "usage: perseas-expendable SECONDS" in done.stderr


def test_it_says_what_it_was_not_told():
    done = subprocess.run([SCRIPT, "1"], env={"PATH": "/usr/bin:/bin", "PERSEAS_MIRRORS": "m1"},
                          text=True, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2 and "PERSEAS_SELF" in done.stderr
