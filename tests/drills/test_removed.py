"""Files of images that are removed or moved while daemons run: by logind's RemoveIPC=, a cleaner of
/dev/shm, or rm. The daemon still has the images in memory, but its successor would not."""
import shutil
import subprocess

import pytest

from binding import Store
from cluster import wait_for
from drill import OK, SECONDS, fill, mirror_list, wait_ownerless
from teller import LOG, tellers  # noqa: F401
from watching import Watch, options, parse

BYTES = b"what was acknowledged"


def logged(daemon, text):
    """Returns the number of lines in the daemon's log that contain the text."""
    return sum(text in line for line in daemon.log().splitlines())


def await_log(daemon, text, count=1):
    wait_for(lambda: logged(daemon, text) >= count, SECONDS, "%s in the log" % text)


BACK = "its files are in place again"
MISSING = "it would not survive a restart"


def bank(daemons):
    fill("bank", daemons, {"a": BYTES}, log_size=65536)


def assert_kept(daemons):
    """Restarts each daemon, and checks the contents of the store."""
    for daemon in daemons:
        daemon.restart()
    with Store("bank", mirror_list(daemons)) as store:
        store.map("a")
        assert store.read("a", 0, len(BYTES)) == BYTES


def remove_all(daemon):
    """Removes everything while the daemon is stopped: files that it recreated would keep the folder
    from being removed."""
    daemon.stop()
    shutil.rmtree(daemon.memory)
    daemon.cont()


def remove_files(daemon):
    """Removes the files but not the folders, as a cleaner does, while the daemon is stopped."""
    daemon.stop()
    for path in daemon.memory.rglob("*"):
        if not path.is_dir():
            path.unlink()
    daemon.cont()


def remove_one(name):
    def remove(daemon):
        (daemon.memory / "bank" / name).unlink()
    return remove


@pytest.mark.parametrize("remove", [
    remove_all, remove_files, remove_one("segment-0.1"), remove_one("log.1"),
    remove_one("header"), remove_one(".perseas")], ids=[
        "all", "files", "segment", "log", "header", "mark"])
def test_images_survive_the_removal_of_their_files(mirrors, remove):
    daemons = mirrors(3)
    bank(daemons)
    for daemon in daemons:
        remove(daemon)
    for daemon in daemons:
        await_log(daemon, BACK)
    assert_kept(daemons)


def test_an_owner_goes_on_while_files_go_on_each_mirror(mirrors, tellers, fabric):
    """One mirror after the other loses its files and is restarted while an owner commits. Nothing
    acknowledged is lost."""
    daemons = mirrors(3, fabric)
    owner = tellers.run("bank", daemons, "create", LOG, "commit-ms=200")
    owner.advances(100)
    for daemon in daemons:
        remove_all(daemon)
        await_log(daemon, BACK)
        owner.advances(100)
        daemon.restart()
        owner.advances(100)
    owner.kill9()
    assert tellers.verify("bank", daemons, owner.page) >= owner.page.acked


def test_files_that_go_everywhere_at_once_lose_nothing(mirrors, tellers, fabric):
    """On all mirrors at the same time; then all hosts are restarted in order."""
    daemons = mirrors(3, fabric)
    owner = tellers.run("bank", daemons, "create", LOG, "commit-ms=200")
    owner.advances(100)
    for daemon in daemons:
        remove_all(daemon)
    for daemon in daemons:
        await_log(daemon, BACK)
    owner.advances(100)
    owner.kill9()
    for daemon in daemons:
        daemon.restart()
    assert tellers.verify("bank", daemons, owner.page) >= owner.page.acked


def test_another_daemon_s_directory_is_left_alone(mirrors, tmp_path):
    """The directory is removed, and another daemon is started in it before the first one
    notices."""
    first, second = mirrors(2)
    bank([first])
    second.terminate()
    first.stop()
    shutil.rmtree(first.memory)
    second.mirror.options += ["--memory-dir", str(first.memory)]
    second.mirror.start()
    before = sorted(str(path) for path in first.memory.rglob("*"))
    first.cont()
    await_log(first, "in use by another perseasd")
    await_log(first, MISSING)
    assert sorted(str(path) for path in first.memory.rglob("*")) == before
    with Store("bank", first.address) as store:  # the first daemon still has it in memory
        store.map("a")
        assert store.read("a", 0, len(BYTES)) == BYTES
    assert not (first.memory / "bank").exists()
    second.terminate()
    await_log(first, BACK)
    assert_kept([first])


def limit(daemon, bytes_count, *more):
    daemon.terminate()
    daemon.mirror.options += ["--max-memory", str(bytes_count), *more]
    daemon.restart()


def test_a_spill_saves_what_cannot_be_made_again(mirrors, tmp_path):
    """There is no memory for a second copy of the image. The image can still be claimed, and its
    header stays unchanged; the daemon ends in order, and its successor loads the spill."""
    daemon, = mirrors(1)
    limit(daemon, 200 << 10, "--spill-dir", str(tmp_path / "spill"))
    bank([daemon])
    remove_one("segment-0.1")(daemon)
    await_log(daemon, "no memory for the image twice")
    header = daemon.memory / "bank" / "header"
    before = header.read_bytes()
    with Store("bank", daemon.address) as store:
        store.map("a")
        store.write("a", 0, b"WHAT")
    assert header.read_bytes() == before
    assert daemon.terminate() == 0
    assert not (daemon.memory / "bank").exists()
    daemon.restart()
    with Store("bank", daemon.address) as store:
        store.map("a")
        assert store.read("a", 0, len(BYTES)) == b"WHAT" + BYTES[4:]


def test_what_will_be_lost_is_told_at_the_end(mirrors):
    daemon, = mirrors(1)
    limit(daemon, 200 << 10)
    bank([daemon])
    remove_all(daemon)
    await_log(daemon, "no memory for the image twice")
    assert daemon.terminate() == 0
    assert logged(daemon, "the next one will not have the image") == 1


def test_an_end_comes_right_after_the_removal(mirrors):
    """rm and restart in one line: the daemon recreates the image before it ends, although it had no
    time to notice before."""
    daemon, = mirrors(1)
    bank([daemon])
    daemon.stop()
    shutil.rmtree(daemon.memory)
    daemon.mirror.process.terminate()
    daemon.cont()
    assert daemon.mirror.process.wait(SECONDS) == 0
    assert logged(daemon, "will not have the image") == 0
    assert_kept([daemon])


@pytest.mark.parametrize("what", ["", "bank", "bank/log.1"], ids=["directory", "folder", "file"])
def test_what_was_moved_can_come_back(mirrors, what, tmp_path):
    """The daemon reports it, creates nothing in its place, and all is well when it is back."""
    daemon, = mirrors(1)
    bank([daemon])
    place, away = daemon.memory / what, daemon.mirror.folder / "away"
    place.rename(away)
    await_log(daemon, MISSING)
    assert not place.exists()
    away.rename(place)
    await_log(daemon, BACK)
    assert_kept([daemon])


def test_monitoring_sees_images_that_a_restart_would_lose(mirrors, tmp_path):
    daemon, = mirrors(1, options=options(tmp_path))
    bank([daemon])
    watch = Watch(tmp_path)

    def of_bank(metric):
        samples, _ = parse(watch.get("/metrics?for=alerts"))
        return {dict(key)["store"]: value for key, value in samples[metric].items()}["bank"]

    assert of_bank("perseas_store_files_missing") == 0
    away = daemon.mirror.folder / "away"
    (daemon.memory / "bank").rename(away)
    wait_for(lambda: of_bank("perseas_store_files_missing") == 1, SECONDS, "missing files")
    assert of_bank("perseas_store_files_missing_total") == 1
    away.rename(daemon.memory / "bank")
    wait_for(lambda: of_bank("perseas_store_files_missing") == 0, SECONDS, "files")
    assert of_bank("perseas_store_files_missing_total") == 1


def test_a_daemon_s_own_removals_raise_no_alarm(mirrors, tellers, perseas):
    """Stores are created and dropped, owners take over from each other, images are copied, segments
    are destroyed, spare files are exchanged with headers."""
    daemons = mirrors(3, "shm")
    for name in ("one", "two"):
        owner = tellers.run(name, daemons, "create", LOG, "commit-ms=200")
        owner.advances(50)
        owner.kill9()
        done = perseas("recover", name, "--takeover", mirrors=daemons)
        assert done.status == OK, done
        done = perseas("drop", name, daemons[0].address, "--yes")
        assert done.status == OK, done
        daemons[1].restart()
        owner = tellers.run(name, daemons, "commit-ms=200")
        owner.advances(50)
        owner.kill9()
        wait_ownerless(name, daemons)
        done = perseas("drop", name, mirror_list(daemons), "--yes")
        assert done.status == OK, done
    assert [logged(daemon, MISSING) for daemon in daemons] == [0, 0, 0]


@pytest.mark.root("mounts file systems")
def test_an_unmounted_file_system_is_told_of(mirrors, tmp_path):
    """umount -l: the daemon still has the tmpfs, but the path leads to a disk, where nothing is
    created."""
    daemon, = mirrors(1)
    daemon.terminate()
    place = tmp_path / "mounted"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m,mode=700", "none", str(place)]
    subprocess.run(mount, check=True)
    try:
        daemon.mirror.options += ["--memory-dir", str(place / "memory")]
        daemon.mirror.start()
        bank([daemon])
        subprocess.run(["umount", "-l", str(place)], check=True)
        await_log(daemon, "moved, or unmounted")
        await_log(daemon, MISSING)
        assert list(place.iterdir()) == []
        with Store("bank", daemon.address) as store:
            store.map("a")
            assert store.read("a", 0, len(BYTES)) == BYTES
        assert list(place.iterdir()) == []
        daemon.kill9()
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def move_away(daemon):
    place, away = daemon.memory / "bank", daemon.mirror.folder / "away"
    place.rename(away)
    await_log(daemon, MISSING)


def test_the_command_names_images_that_a_restart_would_lose(mirrors, perseas):
    """First one of three mirrors, then all: a restart of any is a loss, and the verdict about the
    next loss counts these images as lost."""
    daemons = mirrors(3)
    bank(daemons)
    for count, hurt in ((1, daemons[1:]), (2, daemons), (3, daemons)):
        move_away(daemons[count - 1])
        first, *rest = perseas("status", "bank", mirrors=daemons).out.splitlines()
        assert first == (
            "can commit: yes; can open: yes; next loss that hurts: any of %s; would not survive a "
            "restart: %s" % (mirror_list(hurt).replace(",", ", "),
                             mirror_list(daemons[:count]).replace(",", ", ")))
        assert sum("would lose its image if its daemon were restarted: a restart would not" in line
                   for line in rest) == count
    done = perseas("ls", mirrors=daemons)
    assert done.out.count("would not survive a restart: a restart would not find") == 3, done
    checks = perseas("doctor", "--json", mirrors=daemons).json()["checks"]
    for daemon in daemons:
        check, = [each for each in checks if each["name"] == "mirror " + daemon.address]
        assert check["result"] == "fail" and "would lose store bank" in check["found"], check


def test_a_store_with_an_image_at_risk_bears_less(mirrors, perseas):
    """The check of whether another mirror may be restarted counts the image as lost."""
    daemons = mirrors(3)
    bank(daemons)
    told = perseas("status", "--all", mirror_list(daemons), "--json").json()["stores"]
    assert [store["bears"] for store in told] == [1]
    move_away(daemons[0])
    told = perseas("status", "--all", mirror_list(daemons), "--json").json()["stores"]
    assert [store["bears"] for store in told] == [0]
