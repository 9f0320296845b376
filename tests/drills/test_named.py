"""Named mirror lists: the command, the library and standbys accept "@NAME" wherever they accept a
list, and look it up when they need it."""
import errno
import os
import signal
import subprocess

from binding import CREATE, Store
from drill import (OK, PARTLY, SECONDS, USAGE, command_line, die_with_parent, fill, mirror_list,
                   run_command, wait_for, wait_ownerless)
from test_run import LIVES, OWNS, run  # noqa: F401  # pylint: disable=unused-import


def name_cluster(folder, monkeypatch, **clusters):
    """Writes a file of clusters for all processes that start afterward."""
    path = folder / "clusters"
    written = folder / "clusters.new"
    written.write_text("".join("%s %s\n" % each for each in clusters.items()))
    written.rename(path)
    monkeypatch.setenv("PERSEAS_CLUSTERS", str(path))


def test_a_store_is_made_opened_and_looked_at_by_the_name_of_its_mirrors(mirrors, tmp_path,
                                                                         monkeypatch):
    daemons = mirrors(3)
    name_cluster(tmp_path, monkeypatch, bank=mirror_list(daemons), one=daemons[0].address)
    assert run_command("create", "made", "@bank").status == 0
    with Store("opened", "@bank", flags=CREATE) as store:
        store.map("s", 64)
        store.publish()
    listed = run_command("ls", "--mirrors", "@bank")
    assert listed.status == 0
    for daemon in daemons:
        assert daemon.address in listed.out
    # The roster decides: by a name for one mirror, two of three are found.
    with Store("opened", "@one") as store:
        store.map("s")
    monkeypatch.setenv("PERSEAS_MIRRORS", "@bank")
    assert run_command("status", "made").status == 0


def test_a_name_that_nobody_knows_is_refused_by_name(mirrors, tmp_path, monkeypatch):
    daemon, = mirrors(1)
    name_cluster(tmp_path, monkeypatch, bank=daemon.address)
    for words in (("ls", "@shop"), ("create", "x", "@shop"), ("run", "x", "@shop", "--", "true")):
        refused = run_command(*words)
        assert refused.status == USAGE, words
        assert "no cluster is named @shop" in refused.err
    refused = run_command("spill", "@bank")
    assert refused.status == USAGE and "name one mirror itself" in refused.err


def test_a_standby_looks_its_name_up_again_until_it_finds_its_mirrors(mirrors, tmp_path,
                                                                      monkeypatch):
    """The mirrors moved to other hosts while a standby waited."""
    daemons = mirrors(3)
    fill("data", daemons, {"s": b"contents"})
    wait_ownerless("data", daemons)
    name_cluster(tmp_path, monkeypatch, bank="127.0.0.1:1")
    output, log = tmp_path / "output", tmp_path / "log"
    with open(output, "wb") as out, open(log, "wb") as err:
        runner = subprocess.Popen(
            command_line("run", "data", "@bank", "--patience", "600", "--",
                         "sh", "-c", "echo $PERSEAS_MIRRORS"), stdout=out, stderr=err,
            env=os.environ, preexec_fn=die_with_parent)
    try:
        wait_for(lambda: "waits for its mirrors" in log.read_text(), SECONDS, "a run that waits")
        name_cluster(tmp_path, monkeypatch, bank=mirror_list(daemons))
        assert runner.wait(SECONDS) == 0, log.read_text()
        assert output.read_text() == "@bank\n"
    finally:
        if runner.poll() is None:
            runner.send_signal(signal.SIGKILL)
            runner.wait()


def test_a_standby_asks_its_mirrors_while_nobody_says_what_their_name_stands_for(
        mirrors, tmp_path, monkeypatch):
    """All mirrors are down when the file of clusters stops answering: it is a pipe that nobody
    writes to, like a silent name server. The mirrors come back, and the standby takes over."""
    daemons = mirrors(3)
    fill("data", daemons, {"s": b"contents"})
    wait_ownerless("data", daemons)
    name_cluster(tmp_path, monkeypatch, bank=mirror_list(daemons))
    for daemon in daemons:
        daemon.kill9()
    log = tmp_path / "log"
    with open(log, "wb") as err:
        runner = subprocess.Popen(
            command_line("run", "data", "@bank", "--patience", "600", "--", "true"), stderr=err,
            env=os.environ, preexec_fn=die_with_parent)
    try:
        wait_for(lambda: "waits for its mirrors" in log.read_text(), SECONDS, "a run that waits")
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        pipe.rename(tmp_path / "clusters")
        writer = wait_for(lambda: opened(tmp_path / "clusters"), SECONDS, "a lookup")
        for daemon in daemons:
            daemon.restart()
        assert runner.wait(SECONDS) == 0, log.read_text()
        os.close(writer)
    finally:
        if runner.poll() is None:
            runner.send_signal(signal.SIGKILL)
            runner.wait()


def test_command_opens_its_store_while_nobody_says_what_its_list_stands_for(
        bank, owner, run, tmp_path, monkeypatch):  # noqa: F811
    """The file of clusters stops answering before the owner dies: `perseas run` passes on what the
    name stood for. Without that the open would fail."""
    daemons = bank(3)
    name_cluster(tmp_path, monkeypatch, bank=mirror_list(daemons))
    first = owner("bank", daemons)
    standby = run("bank", "@bank")
    standby.wait_said(LIVES)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    pipe.rename(tmp_path / "clusters")
    first.kill9()
    standby.wait_printed("holding")
    standby.wait_said(OWNS)


def test_a_list_that_is_behind_leads_to_the_store_by_any_mirror_that_is_left(
        mirrors, run, tmp_path, monkeypatch):  # noqa: F811
    """The owner replaced a mirror, which is gone. Processes with the old list stand by, take over,
    and open the store with all its mirrors."""
    daemons = mirrors(4)
    patient = dict(connect_timeout_ms=1000 * SECONDS, mirror_timeout_ms=1000 * SECONDS)
    fill("bank", daemons[:3], {"data": b"contents"}, **patient)
    name_cluster(tmp_path, monkeypatch, bank=mirror_list(daemons[:3]))
    with Store("bank", "@bank", **patient) as first:
        first.map("data")
        standbys = [run("bank", "@bank")]
        standbys[0].wait_said(LIVES)
        first.replace(daemons[0].address, daemons[3].address)
        daemons[0].kill9()
        standbys.append(run("bank", "@bank"))
        standbys[1].wait_said(LIVES)
        first.write("data", 0, b"CONTENTS")
    wait_for(lambda: any("holding" in each.printed() for each in standbys), SECONDS, "the next one")
    done = run_command("roster", "bank", "--json", "--connect-timeout", 1000 * SECONDS,
                       mirrors="@bank")
    assert done.status == PARTLY and "refused the connection" in done.err, done
    members = [each["address"] for each in done.json()["roster"]["members"]]
    assert sorted(members) == sorted(d.address for d in daemons[1:]), done
    name_cluster(tmp_path, monkeypatch, bank=mirror_list(daemons[1:]))
    assert run_command("roster", "bank", mirrors="@bank").status == OK


def opened(pipe):
    """Returns a descriptor for writing to the pipe, or None if nobody reads it yet."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        assert error.errno == errno.ENXIO
        return None
