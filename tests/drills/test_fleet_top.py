"""perseas top --all: a fleet, look after look; a line for what needs somebody, totals for the
rest."""
import re

from drill import (FAILURE, NO, OK, PARTLY, SECONDS, USAGE, at_hosts, fill, mirror_list,
                   run_command)
from many import DAEMONS, PATIENT, STORES, make_stores
from test_top import Running, Terminal, fits

SHORT = ("--interval", "0.2")
SLOW = ("--connect-timeout", 1000 * SECONDS)
DOWN, END, UP, PAGE_DOWN, TOP_KEY = b"\x1b[B", b"G", b"k", b"\x1b[6~", b"g"


def look(daemons, *words):
    return run_command("top", "--all", "--once", *SHORT, *SLOW, *words, mirrors=daemons)


def stores_of(done):
    """Names at the beginnings of the lines of the table of stores."""
    lines = done.out.splitlines()
    if not any(line.startswith("STORE ") for line in lines):
        return []
    rows = lines[next(i for i, line in enumerate(lines) if line.startswith("STORE ")) + 1:]
    return [row.split()[0] for row in rows[:next(
        i for i, row in enumerate(rows) if " well" in row and row.split()[0].isdigit())]]


def watching(daemons, *words):
    return Running("--all", *SHORT, "--json", *(str(w) for w in words), "--mirrors",
                   mirror_list(daemons))


def the(told, name):
    """What is told of the store. Nothing, before a mirror has answered."""
    nothing = dict.fromkeys(("owner", "owner_gone_ms", "attention", "bears", "mirrors_whole"))
    return next((store for store in told["stores"] if store["store"] == name), nothing)


def test_a_hundred_stores_that_are_well_are_a_line_together(mirrors):
    """Then a daemon dies: its stores have a line each, and the others stay together. On a terminal
    of 24 lines keys move what is seen of it."""
    daemons = at_hosts(mirrors, *("h%d" % number for number in range(DAEMONS)))
    homes = make_stores(daemons)
    done = look(daemons)
    assert done.status == OK and done.err == "", done
    lines = done.out.splitlines()
    assert lines[0].endswith("100 stores on 10 daemons; all bear the losses that they promise; "
                             "100 without an owner")
    assert lines[1].startswith("100 stores are well, 100 of them without an owner; 0.0 trans")
    assert lines[2] == "" and lines[3].split() == ["DAEMON", "STORES", "OWNERS", "USED", "ROOM",
                                                   "LOAD"]
    assert sorted(line.split()[0] for line in lines[4:]) == sorted(d.address for d in daemons)
    for line in lines[4:]:
        assert re.search(r"^\S+ +\d+ +0 +[\d.]+ \w+ +[\d.]+ \w+ +\d+\.\d\d of \d+$", line), line

    dead = daemons[3]
    dead.kill9()
    hurt = sorted(name for name, home in homes.items() if dead in home)
    done = look(daemons)
    assert done.status == NO and dead.address in done.err, done
    assert done.out.splitlines()[1].startswith(dead.address), done
    assert stores_of(done) == hurt
    well = STORES - len(hurt)
    assert "%d stores are well, %d of them without" % (well, well) in done.out, done
    told = look(daemons, "--json").json()
    assert (told["bare"], told["attention"], told["unreachable"]) == (len(hurt), len(hurt), 1)
    assert sorted(s["store"] for s in told["stores"] if s["attention"]) == hurt
    assert len(told["stores"]) == STORES and told["tx_per_second"] == 0
    for each in told["daemons"]:
        assert ("load" in each and each["memory_room"] > 0) == (each["address"] != dead.address)
    scrolls(daemons, hurt)


def scrolls(daemons, hurt):
    terminal = Terminal(24, 100, "--all", *SHORT, *(str(word) for word in SLOW), "--mirrors",
                        mirror_list(daemons))
    # Those that have not answered yet do not count at first.
    frame = terminal.shows(r"\Aperseas top: 100 stores on 10 daemons, of which 1 does not(?s:.*)"
                           r"\n%s (?s:.*) lines more\Z" % hurt[0])
    assert fits(frame, 24, 100) and hurt[-1] not in "\n".join(frame)
    for key, shown in ((DOWN, "^1 lines above, "), (PAGE_DOWN, "^23 lines above, "),
                       (UP, "^22 lines above, "), (END, r" lines above, 0 lines more$")):
        terminal.press(key)
        frame = terminal.shows("(?m)" + shown)
        assert fits(frame, 24, 100) and not frame[0].startswith("perseas top")
    assert any(line.startswith("DAEMON") for line in frame), "the end of it"
    terminal.press(TOP_KEY + b"q")
    assert terminal.wait()[0] == OK


def test_an_owner_that_went_away_is_somebodys_business(mirrors, owner):
    """A store without an owner is well while top has not seen one."""
    daemons = at_hosts(mirrors, "h1", "h2", "h3")
    for name in ("rests", "runs"):
        fill(name, daemons, {"data": b"contents"}, **PATIENT)
    top = watching(daemons, *SLOW)
    top.until(lambda told: not the(told, "runs")["owner"])
    holder = owner("runs", daemons)
    told = top.until(lambda told: the(told, "runs")["owner"])
    assert not the(told, "rests")["attention"]
    holder.kill9()
    told = top.until(lambda told: the(told, "runs")["owner_gone_ms"] is not None)
    assert the(told, "runs")["attention"] and the(told, "runs")["bears"] == 1
    assert not the(told, "rests")["attention"] and the(told, "rests")["owner_gone_ms"] is None
    owner("runs", daemons)
    top.until(lambda told: not the(told, "runs")["attention"])
    assert top.end() == (OK, "")


def test_a_daemon_that_is_slow_is_no_loss(mirrors):
    """Until the time for it is over it counts with what it told before, and a note says so."""
    daemons = at_hosts(mirrors, "h1", "h2", "h3")
    fill("s", daemons, {"data": b"contents"}, **PATIENT)
    top = watching(daemons, *SLOW)
    top.until(lambda told: the(told, "s")["mirrors_whole"] == 3 and
              all("load" in each for each in told["daemons"]))
    daemons[1].stop()
    # More looks than can have been under way, or have lain in the pipe.
    for _ in range(5):
        told = top.until(lambda told: True)
        assert not the(told, "s")["attention"] and told["unreachable"] == 0
    daemons[1].cont()
    daemons[1].kill9()
    told = top.until(lambda told: told["unreachable"])
    assert the(told, "s")["attention"] and told["daemons"][1]["error"]
    assert top.end() == (OK, "")


def test_daemons_that_rosters_name_are_asked_too(mirrors):
    daemons = mirrors(3)
    fill("s", daemons, {"data": b"contents"}, **PATIENT)
    told = look(daemons[:1], "--json").json()
    assert [(d["address"], d["named"], "load" in d) for d in told["daemons"]] == [
        (d.address, d is daemons[0], True) for d in daemons]
    assert the(told, "s")["mirrors_whole"] == 3
    done = look(daemons)
    assert done.status == OK and done.err == "", done


def test_the_status_of_a_look_is_for_scripts(mirrors):
    """No stores; a daemon that does not answer and holds nothing; none that answers; mistakes."""
    daemons = mirrors(2)
    done = look(daemons)
    assert done.status == OK and "no stores are seen\n" in done.out, done
    daemons[1].kill9()
    assert look(daemons).status == PARTLY
    daemons[0].kill9()
    done = look(daemons)
    assert done.status == FAILURE and "no daemon answers" in done.err, done
    assert run_command("top", "--all", "--once", mirrors="a:1," * 1024 + "a:2").status == USAGE
    assert look(daemons, "--json").json()["unreachable"] == 2
