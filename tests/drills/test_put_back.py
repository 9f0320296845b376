"""Memory directories that are put back: mirrors that are older than what they acknowledged. They
count for nothing, and nothing of what was acknowledged is lost."""
import subprocess

from drill import SECONDS, run_command, wait_for
from teller import LOG, tellers, until  # noqa: F401

SAID = "was copied here or put back"


def back_up(daemon, how=("cp", "-a")):
    """A copy of its memory directory, made while it does not run."""
    daemon.kill9()
    copy = daemon.memory.with_name("backup")
    subprocess.run([*how, daemon.memory, copy], check=True)
    daemon.restart()


def put_back(daemon):
    """The directory is removed, and the copy gets its name; the daemon starts."""
    daemon.kill9()
    subprocess.run(["rm", "-r", daemon.memory], check=True)
    subprocess.run(["cp", "-a", daemon.memory.with_name("backup"), daemon.memory], check=True)
    daemon.restart()


def asides(daemon):
    return [each.name for each in daemon.memory.iterdir() if ".aside-" in each.name]


def write(tellers, daemons, page, count):  # noqa: F811
    """Another owner takes the store over, and commits so many on all of them."""
    desk = tellers.desk(page)
    desk.open("books", daemons, "create", "acks=2", LOG)
    desk.books()
    desk.run(count)
    desk.settle()
    desk.ask("close")


def test_two_of_three_mirrors_that_were_put_back_choose_nothing(
        mirrors, tellers):  # noqa: F811
    """The third one, which holds everything, is away: R mirrors answer, and the open is refused.
    With the third one it is refused, too, and names what that one has, for a person to decide."""
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
    # What was put back stays for a person to look at, and is named.
    for daemon in daemons[:2]:
        assert asides(daemon) == [".books.aside-1"]
        told = run_command("ls", mirrors=[daemon])
        assert "set aside, since it may be old: .books.aside-1" in told.out, told
        told = run_command("ls", "--json", mirrors=[daemon]).json()
        assert told["mirrors"][0]["set_aside"] == [".books.aside-1"]
        told = run_command("doctor", "--json", mirrors=[daemon]).json()
        check, = [each for each in told["checks"] if each["name"] == "mirror " + daemon.address]
        assert check["result"] == "warning" and "set aside .books.aside-1" in check["found"], check


def test_a_mirror_that_was_put_back_under_an_owner_is_made_anew(mirrors, tellers):  # noqa: F811
    """The owner goes on, and copies to it, as to one that lost its memory."""
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
    """The same files, by another path and by another daemon."""
    daemon, = mirrors(1)
    page = tellers.page()
    desk = tellers.desk(page)
    desk.open("books", [daemon], "create", LOG)
    desk.books()
    desk.run(50)
    desk.ask("close")
    for _ in range(2):
        daemon.kill9()
        elsewhere = daemon.memory.with_name("elsewhere")
        daemon.memory.rename(elsewhere)
        elsewhere.rename(daemon.memory)
        daemon.restart()
        assert tellers.verify("books", [daemon], page) == page.acked
    assert asides(daemon) == []
    assert SAID not in daemon.log()


def test_an_image_of_a_version_without_notes_gets_one(mirrors, tellers):  # noqa: F811
    """Its first start under this version serves it. From then on a copy of it does not count."""
    daemon, = mirrors(1)
    page = tellers.page()
    desk = tellers.desk(page)
    desk.open("books", [daemon], "create", LOG)
    desk.books()
    desk.run(50)
    desk.ask("close")
    daemon.kill9()
    note = daemon.memory / "books" / ".origin"
    note.unlink()
    daemon.restart()
    wait_for(note.exists, SECONDS, "a note")
    assert tellers.verify("books", [daemon], page) == page.acked
    back_up(daemon)
    put_back(daemon)
    assert asides(daemon) == [".books.aside-1"]
