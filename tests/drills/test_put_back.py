"""Memory directories restored from a copy: mirrors with less than what they acknowledged. Their
images do not count, and nothing acknowledged is lost."""
import os
import shutil
import subprocess

import pytest

from binding import Store
from drill import (NO, OK, PARTLY, SECONDS, fill, mirror_list, run_command, status_of, wait_even,
                   wait_for, wait_ownerless)
from teller import LOG, tellers, until  # noqa: F401

SAID = "was copied here or put back"


def back_up(daemon, how=("cp", "-a")):
    """Copies the memory directory of a stopped daemon."""
    daemon.kill9()
    copy = daemon.memory.with_name("backup")
    subprocess.run([*how, daemon.memory, copy], check=True)
    daemon.restart()


def put_back(daemon):
    """Replaces the directory by the copy and starts the daemon."""
    daemon.kill9()
    subprocess.run(["rm", "-r", daemon.memory], check=True)
    subprocess.run(["cp", "-a", daemon.memory.with_name("backup"), daemon.memory], check=True)
    daemon.restart()


def asides(daemon):
    return [each.name for each in daemon.memory.iterdir() if ".aside-" in each.name]


def write(tellers, daemons, page, count):  # noqa: F811
    """Has another owner take the store over and commit `count` transactions on all mirrors."""
    desk = tellers.desk(page)
    desk.open("books", daemons, "create", "acks=2", LOG)
    desk.books()
    desk.run(count)
    desk.settle()
    desk.ask("close")


def mirror_with_books(mirrors, tellers):
    """Returns a mirror with transactions of an owner that has ended, and the page that tells
    which."""
    daemon, = mirrors(1)
    page = tellers.page()
    desk = tellers.desk(page)
    desk.open("books", [daemon], "create", LOG)
    desk.books()
    desk.run(50)
    desk.ask("close")
    return daemon, page


def test_two_of_three_mirrors_that_were_put_back_choose_nothing(
        mirrors, tellers):  # noqa: F811
    """The third mirror, which has everything, is away: R mirrors answer, and the open is refused.
    With the third one it is still refused, and the error names what that one has, for an operator
    to decide."""
    daemons = mirrors(3)
    page = tellers.page()
    write(tellers, daemons, page, 100)
    for daemon in daemons[:2]:
        back_up(daemon)
    write(tellers, daemons, page, 200)
    for daemon in daemons[:2]:
        put_back(daemon)
        assert SAID in daemon.log()
        assert asides(daemon) == [".books.aside-1"]
    daemons[2].kill9()
    desk = tellers.desk(page)
    refused = desk.refused("open", "books", ",".join(d.address for d in daemons))
    assert refused.name == "PERSEAS_EUNREACHABLE", str(refused)
    daemons[2].restart()
    refused = desk.refused("open", "books", ",".join(d.address for d in daemons))
    assert refused.name == "PERSEAS_EQUORUM", str(refused)
    assert "the newest state seen is 2:%d" % (page.acked + 1) in refused.text, str(refused)
    # The restored images are kept for an operator, and named.
    for daemon in daemons[:2]:
        assert asides(daemon) == [".books.aside-1"]
        told = run_command("ls", mirrors=[daemon])
        assert "set aside, since it may be old: .books.aside-1" in told.out, told
        told = run_command("ls", "--json", mirrors=[daemon]).json()
        assert told["mirrors"][0]["set_aside"] == [".books.aside-1"]
        told = run_command("doctor", "--json", mirrors=[daemon]).json()
        check, = [each for each in told["checks"] if each["name"] == "mirror " + daemon.address]
        assert check["result"] == "warning" and "set aside .books.aside-1" in check["found"], check


def test_status_names_an_image_that_was_set_aside(mirrors):
    """For a mirror among others, and for one asked alone. A mirror that never had the store is
    reported differently."""
    daemons, (other,) = mirrors(3), mirrors(1)
    fill("books", daemons, {"a": b"contents"})
    fill("book", [daemons[0]], {"a": b"contents"})
    back_up(daemons[0])
    put_back(daemons[0])
    done = run_command("status", "books", mirrors=[*daemons, other])
    states = [line.split("  ")[1:] for line in done.out.splitlines()
              if line.startswith((daemons[0].address, other.address))]
    assert "set aside" in [cell.strip() for cell in states[0]], done
    assert "no such store" in [cell.strip() for cell in states[1]], done
    said = "%s has set its image of store 'books' aside, since it may be old: it is the folder " \
        ".books.aside-1 of" % daemons[0].address
    assert said in done.err and "remove the folder then" in done.err, done
    shown = run_command("status", "books", "--json", mirrors=[*daemons, other]).json()["mirrors"]
    assert [mirror["set_aside"] for mirror in shown] == [".books.aside-1", None, None, None]
    alone = run_command("status", "books", mirrors=daemons[:1])
    assert alone.status == NO and said in alone.err, alone
    alone = run_command("status", "book", mirrors=daemons[:1])
    assert alone.status == NO and "folder .book.aside-1 of" in alone.err, alone
    # The folder takes memory as long as it is there, also beside an image that was made anew.
    assert run_command("recover", "books", mirrors=daemons).status == OK
    done = run_command("status", "books", "--json", mirrors=daemons)
    assert done.json()["mirrors"][0]["state"] == "consistent", done
    assert done.json()["mirrors"][0]["set_aside"] == ".books.aside-1", done
    done = run_command("status", "books", mirrors=daemons)
    assert "%s has set an earlier image of" % daemons[0].address in done.err, done
    assert "Remove the folder once W mirrors are live" in done.err, done
    shutil.rmtree(daemons[0].memory / ".books.aside-1")
    assert "aside" not in run_command("status", "books", mirrors=daemons).err


def test_a_mirror_that_was_put_back_under_an_owner_is_made_anew(mirrors, tellers):  # noqa: F811
    """The owner continues and copies to it as to a mirror that lost its memory."""
    daemons = mirrors(3)
    page = tellers.page()
    desk = tellers.desk(page)
    desk.open("books", daemons, "create", "acks=2", LOG)
    desk.books()
    desk.run(100)
    back_up(daemons[0])
    until(lambda: desk.figures()["reconnects"] == 1, "an owner that came back to it")
    desk.work_until_live(3)
    put_back(daemons[0])
    assert SAID in daemons[0].log()
    until(lambda: desk.figures()["resyncs"] == 1, "a whole copy on it")
    desk.work_until_live(3)
    assert desk.figures()["resyncs"] == 1
    desk.settle()
    desk.ask("close")
    daemons[1].kill9()
    assert tellers.verify("books", daemons, page) == page.acked


def test_a_restart_and_a_directory_that_was_moved_are_no_copies(mirrors, tellers):  # noqa: F811
    """The same files at another path, and with another daemon."""
    daemon, page = mirror_with_books(mirrors, tellers)
    for _ in range(2):
        daemon.kill9()
        elsewhere = daemon.memory.with_name("elsewhere")
        daemon.memory.rename(elsewhere)
        elsewhere.rename(daemon.memory)
        daemon.restart()
        assert tellers.verify("books", [daemon], page) == page.acked
    assert asides(daemon) == []
    assert SAID not in daemon.log()


@pytest.mark.needs("own_namespaces")
def test_another_container_over_the_same_memory_has_no_copy(mirrors, tellers):  # noqa: F811
    """The daemon starts again in other namespaces, where the memory directory is another mount of
    the same files, and the host has another name."""
    daemon, page = mirror_with_books(mirrors, tellers)
    for name in ("first", "second"):
        daemon.kill9()
        daemon.mirror.wrap = [
            "unshare", "--uts", "--ipc", "--mount",
            *(["--map-root-user"] if os.geteuid() else []), "sh", "-euc",
            'hostname "$0"; mount --bind "$1" "$1"; shift; exec "$@"', name, str(daemon.memory)]
        daemon.restart()
        assert tellers.verify("books", [daemon], page) == page.acked
    assert asides(daemon) == []
    assert SAID not in daemon.log()


def test_an_image_of_a_version_without_notes_gets_one(mirrors, tellers):  # noqa: F811
    """Its first start with this version serves it. From then on a copy of it does not count."""
    daemon, page = mirror_with_books(mirrors, tellers)
    daemon.kill9()
    note = daemon.memory / "books" / ".origin"
    note.unlink()
    daemon.restart()
    wait_for(note.exists, SECONDS, "a note")
    assert tellers.verify("books", [daemon], page) == page.acked
    back_up(daemon)
    put_back(daemon)
    assert asides(daemon) == [".books.aside-1"]


def write_over(daemon):
    """Overwrites the same files with the bytes of the copy, which no daemon notices at its start.
    It stays down."""
    daemon.kill9()
    copy = daemon.memory.with_name("backup")
    for path in copy.rglob("*"):
        if path.is_file():
            with open(daemon.memory / path.relative_to(copy), "r+b") as file:
                file.write(path.read_bytes())


def called(store, daemons):
    """Returns the states that the store's owner reports for these mirrors."""
    owner = status_of(store, daemons).get("owner") or {"mirrors": []}
    states = {each["address"]: each["state"] for each in owner["mirrors"]}
    return [states.get(daemon.address) for daemon in daemons]


def acknowledged(store, daemons):
    """Returns whether the owner reports each of these mirrors as live and complete."""
    told = status_of(store, daemons)
    owner = told.get("owner") or {"mirrors": []}
    hold = [(each["state"], each["seq"]) for each in owner["mirrors"]]
    return hold == [("live", told["newest"]["seq"])] * len(daemons)


def test_commands_do_not_count_images_that_the_owner_calls_lost(mirrors):
    """Two of three mirrors at a time, so the owner cannot copy them again. status says what to do,
    and verify does not report the three as equal."""
    daemons = mirrors(3)
    old, kept = daemons[:2], daemons[2]
    fill("bank", daemons, {"a": bytes(64)}, acks=2)
    with Store("bank", mirror_list(daemons)) as store:
        store.map("a")
        store.write("a", 0, b"old")
        wait_even("bank", daemons)
        for daemon in old:
            back_up(daemon)
            wait_for(lambda: acknowledged("bank", daemons), SECONDS, "live mirrors")
        store.write("a", 0, b"new")
        wait_even("bank", daemons)
        wait_for(lambda: acknowledged("bank", daemons), SECONDS, "an owner that knows it")
        for daemon in old:
            write_over(daemon)
        for daemon in old:
            daemon.restart()
        wait_for(lambda: called("bank", daemons) == ["lost", "lost", "live"], SECONDS, "lost ones")
        told = run_command("status", "bank", mirrors=daemons).out
        assert told.count("put back: it does not hold what it acknowledged") == 2, told
        assert "2 of 3 mirrors lost their memory" in told and kept.address in told.split("\n")[0]
        done = run_command("verify", "bank", mirrors=daemons)
        assert done.status == PARTLY and done.out.count("its owner calls it lost") == 2, done
    wait_ownerless("bank", daemons)
    line, = [each.split() for each in told.splitlines() if each.startswith("    perseas recover")]
    done = run_command(*line[1:])
    assert done.status == OK, done
    with Store("bank.saved", mirror_list(daemons)) as store:
        store.map("a")
        assert store.read("a", 0, 3) == b"new"
