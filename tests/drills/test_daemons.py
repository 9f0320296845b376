"""Daemons are counted by their ids, and not by the addresses that lead to them."""
import os
import shutil

import pytest

from binding import CREATE, TAKEOVER, PerseasError, Store
from drill import (NO, OK, SECONDS, at_hosts, fill, mirror_list, status_of, wait_even, wait_for,
                   wait_ownerless)


def identities(daemons, perseas, *words):
    """Returns the id that each address reports for its daemon."""
    done = perseas(*words, "--json", mirrors=daemons)
    return [mirror["daemon"] for mirror in done.json()["mirrors"]]


def test_each_answer_tells_which_daemon_it_is_from(mirrors, perseas):
    """For any address, with and without the store, and after a restart."""
    one, two = mirrors(2)
    addresses = ",".join([one.mirror.tcp, one.mirror.unix, two.mirror.tcp])
    told = identities(addresses, perseas, "ls")
    assert told[0] == told[1] and told[0] != told[2] and len(told[2]) == 32
    with Store("bank", one.address, flags=CREATE):
        pass
    assert identities(mirror_list([one, two]), perseas, "status", "bank") == [told[0], told[2]]
    one.kill9()
    one.restart()
    assert identities(addresses, perseas, "ls") == told


def test_a_copy_of_a_memory_directory_is_another_daemon(mirrors, perseas):
    """A copy made with `cp -a` has all bytes of the original, but other inodes of another age."""
    one, = mirrors(1)
    before = identities(one.address, perseas, "ls")
    assert one.terminate() == 0
    kept = one.memory.with_name("kept")
    os.rename(one.memory, kept)
    shutil.copytree(kept, one.memory)
    one.mirror.start()
    copied = identities(one.address, perseas, "ls")
    assert copied != before
    assert one.terminate() == 0
    shutil.rmtree(one.memory)
    os.rename(kept, one.memory)
    one.mirror.start()
    assert identities(one.address, perseas, "ls") == before


def test_a_daemon_of_an_older_version_tells_no_identity(mirrors, perseas):
    """It is queried and used as before."""
    one, two = mirrors(2)
    assert one.terminate() == 0
    one.mirror.options = [*one.mirror.options, "--protocol=8"]
    one.mirror.start()
    with Store("bank", mirror_list([one, two]), flags=CREATE):
        done = perseas("status", "bank", "--json", mirrors=[one, two])
    assert done.status == OK
    told = [mirror["daemon"] for mirror in done.json()["mirrors"]]
    assert told[0] is None and told[1]


KEPT = b"kept" * 16


def at_sockets(mirrors, count):
    """Starts daemons whose addresses are paths, which a test can redirect."""
    daemons = mirrors(count)
    for daemon in daemons:
        daemon.fabric = "shm"
    return daemons


def exchange(one, two):
    """Starts two daemons at each other's address."""
    for daemon in (one, two):
        assert daemon.terminate() == 0
    one.mirror.socket, two.mirror.socket = two.mirror.socket, one.mirror.socket
    one.mirror.start()
    two.mirror.start()


def roster_of(daemons):
    """Returns {address: image id}."""
    members = status_of("bank", daemons)["roster"]["members"]
    return {member["address"]: member["image_id"] for member in members}


def lead(daemon, to):
    """Makes the address of a stopped daemon lead to another daemon."""
    os.unlink(daemon.mirror.socket)
    os.symlink(to.mirror.socket, daemon.mirror.socket)


def report_on(address, daemons):
    """Returns the owner's report about its mirror at that address."""
    owner = status_of("bank", daemons)["owner"] or {}
    for report in owner.get("mirrors", []):
        if report["address"] == address:
            return report
    return {"state": "", "trouble": ""}


def open_and_read(addresses):
    with Store("bank", addresses) as store:
        store.map("a", 0)
        return store.read("a", 0, len(KEPT))


@pytest.mark.parametrize("live", [False, True])
def test_a_daemon_does_not_join_under_a_second_address(mirrors, perseas, live):
    """Its only image is unchanged, and the store can be opened from either address."""
    one, = mirrors(1)
    second = "localhost:%d" % one.mirror.port
    fill("bank", [one], {"a": KEPT})
    owner = Store("bank", one.address) if live else None
    for dry in ([], ["--dry-run"]):
        done = perseas("roster", "add", "bank", one.address, second, *dry)
        assert done.status == NO, done
        assert "%s is the mirror %s of the roster" % (second, one.address) in done.err, done
    if owner:
        owner.close()
    for address in (one.address, second):
        assert open_and_read(address) == KEPT
    members = status_of("bank", [one])["roster"]["members"]
    assert [member["address"] for member in members] == [one.address]


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_a_daemon_that_takes_its_own_place_gets_another_address(mirrors, perseas, count, live):
    """From its socket to its port: nothing is copied, and its image is unchanged."""
    daemons = mirrors(count)
    one = daemons[0]
    one.fabric = "shm"
    here, there = one.mirror.unix, one.mirror.tcp
    fill("bank", daemons, {"a": KEPT})
    before = status_of("bank", daemons)["roster"]["members"]
    owner = Store("bank", mirror_list(daemons)) if live else None
    change = ["roster", "replace", "bank", mirror_list(daemons), here, there]
    assert perseas(*change, "--dry-run").status == OK
    done = perseas(*change)
    assert done.status == OK, done
    if owner:
        assert owner.stat().resyncs == 0
        owner.map("a", 0)
        owner.write("a", 0, b"more")
        wait_even("bank", daemons)
        owner.close()
    one.fabric = "tcp"
    after = status_of("bank", daemons)["roster"]["members"]
    assert [member["image_id"] for member in after] == [member["image_id"] for member in before]
    assert [member["address"] for member in after] == [daemon.address for daemon in daemons]
    assert open_and_read(mirror_list(daemons))[4:] == KEPT[4:]


def test_a_daemon_takes_no_other_members_place(mirrors, perseas):
    """Nor its own place with another W, nor after it was declared gone."""
    one, two = mirrors(2)
    second = "localhost:%d" % one.mirror.port
    fill("bank", [one, two], {"a": KEPT})
    for words in ((two.address, second), (one.address, second, "--gone"),
                  (one.address, second, "--acks", "1")):
        for dry in ([], ["--dry-run"]):
            done = perseas("roster", "replace", "bank", mirror_list([one, two]), *words, *dry)
            assert done.status == NO, done
            assert "%s is the mirror %s of the roster" % (second, one.address) in done.err, done
    assert open_and_read(mirror_list([one, two])) == KEPT


def test_a_commit_counts_a_daemon_once(mirrors):
    """Five mirrors and W = 3: the address of a dead mirror leads to the first one, which is alive,
    and one more is alive. What only these two have is not acknowledged."""
    daemons = at_sockets(mirrors, 5)
    dead = daemons[2]
    fill("bank", daemons, {"a": KEPT}, acks=3)
    with Store("bank", mirror_list(daemons), commit_timeout_ms=500) as store:
        store.map("a", 0)
        dead.kill9()
        lead(dead, daemons[0])
        daemons[3].kill9()
        daemons[4].kill9()
        wait_for(lambda: "same mirror" in report_on(dead.address, daemons[:2])["trouble"], SECONDS,
                 "an owner that knows where the address leads")
        assert report_on(daemons[0].address, daemons[:2])["state"] == "live"
        with pytest.raises(PerseasError) as caught:
            store.write("a", 0, b"none")
        assert caught.value.name == "PERSEAS_EINDOUBT"


def test_a_takeover_counts_a_daemon_once(mirrors):
    """Three mirrors, one of which is down and has an address that leads to another one: R other
    mirrors are there."""
    daemons = at_sockets(mirrors, 3)
    fill("bank", daemons, {"a": KEPT}, acks=2)
    daemons[2].kill9()
    lead(daemons[2], daemons[0])
    with Store("bank", mirror_list(daemons), flags=TAKEOVER) as store:
        assert "is the same mirror as" in store.report()
        store.map("a", 0)
        store.write("a", 0, b"more")
    wait_ownerless("bank", daemons[:2])
    assert open_and_read(mirror_list(daemons[:2])) == b"more" + KEPT[4:]


def test_mirrors_whose_addresses_were_swapped_are_used(mirrors):
    """The live owner needs both mirrors, and recognizes each by its image. The roster does not
    change."""
    daemons = one, two = at_sockets(mirrors, 2)
    fill("bank", daemons, {"a": KEPT}, acks=2)
    with Store("bank", mirror_list(daemons)) as store:
        store.map("a", 0)
        version = status_of("bank", daemons)["roster"]["version"]
        exchange(one, two)
        store.write("a", 0, b"more")
        wait_even("bank", daemons)
        assert status_of("bank", daemons)["roster"]["version"] == version
    assert open_and_read(mirror_list(daemons)) == b"more" + KEPT[4:]


def test_an_exchanged_address_is_recorded(mirrors, perseas):
    """Two daemons of three start at each other's address. With an owner, and without one."""
    daemons = one, two, _ = at_sockets(mirrors, 3)
    fill("bank", daemons, {"a": KEPT}, acks=2)
    images = roster_of(daemons)
    first, second = one.address, two.address
    for address in (first, second):
        images[first], images[second] = images[second], images[first]
        exchange(one, two)
        order = ("roster", "replace", "bank", mirror_list(daemons), address, address)
        if address == first:
            with Store("bank", mirror_list(daemons), flags=TAKEOVER):
                wait_even("bank", daemons)
                done = perseas(*order)
            wait_ownerless("bank", daemons)
        else:
            done = perseas(*order)
        assert done.status == OK, done
        assert roster_of(daemons) == images


def test_the_roster_tells_that_addresses_were_exchanged(mirrors, perseas):
    """And which command records where the mirrors are."""
    daemons = one, two, three = at_sockets(mirrors, 3)
    fill("bank", daemons, {"a": KEPT}, acks=2)
    exchange(two, three)
    shown = perseas("roster", "bank", mirrors=daemons)
    assert shown.status == OK and shown.out.count("now at") == 2, shown
    told = perseas("roster", "bank", "--json", mirrors=daemons).json()["roster"]["members"]
    assert sorted(member["at"] == member["address"] for member in told) == [False, False, True]
    assert "not seen" not in perseas("status", "bank", mirrors=daemons).out
    command = shown.out.splitlines()[-1].partition("run perseas ")[2].split()
    assert perseas(*command).status == OK
    assert "now at" not in perseas("roster", "bank", mirrors=daemons).out


@pytest.mark.parametrize("live", [False, True])
def test_a_dead_mirror_of_an_exchanged_address_is_drained(mirrors, perseas, live):
    """The roster lists the mirror that is left at the address of the dead one. A second drain has
    nothing to do."""
    daemons = one, two, three, four = at_hosts(mirrors, "h1", "h2", "h3", "h4")
    for daemon in daemons:
        daemon.fabric = "shm"
    fill("bank", daemons[:3], {"a": KEPT}, acks=2)
    images = roster_of(daemons[:3])
    dead = images[two.address]
    exchange(two, three)
    owner = Store("bank", mirror_list(daemons[:3]), flags=TAKEOVER) if live else None
    two.kill9()
    shown = perseas("status", "bank", mirrors=daemons[:3])
    assert ("the roster lists %s, whose image was not seen: that mirror is probably at %s now"
            % (three.address, two.address)) in shown.out, shown
    assert two.address + " does not show its image" in perseas("status", "--all",
                                                               mirrors=daemons[:3]).out
    for count in (1, 0):
        done = perseas("drain", two.address, mirror_list([one, three, four]), "--gone")
        assert done.status == OK, done
        assert "%d of %d stores have another mirror" % (count, count) in done.out, done
    left = roster_of([one, three, four])
    assert dead not in left.values() and four.address in left
    assert set(images.values()) - {dead} < set(left.values())
    if owner:
        owner.close()
    assert open_and_read(mirror_list([one, three, four])) == KEPT


def test_which_of_two_dead_mirrors_is_at_an_exchanged_address_is_not_guessed(mirrors, perseas):
    """Once the address of the mirror that is left is recorded, the roster tells."""
    daemons = one, two, three, four, five = at_sockets(mirrors, 5)
    fill("bank", daemons, {"a": KEPT}, acks=3)
    dead = roster_of(daemons)[two.address]
    exchange(two, three)
    two.kill9()
    four.kill9()
    remove = ("roster", "remove", "bank", mirror_list(daemons), two.address, "--gone")
    for order in (remove, (*remove, "--dry-run"),
                  ("drain", two.address, mirror_list([one, three, five]), "--gone")):
        done = perseas(*order)
        assert done.status == NO and "it is not known which of them is where" in done.err, done
    shown = perseas("roster", "bank", mirrors=daemons).out
    assert "now at " + three.address in shown
    command = shown.splitlines()[-1].partition("run perseas ")[2].split()
    assert perseas(*command).status == OK
    assert perseas(*remove).status == OK
    left = roster_of([one, three, five])
    assert dead not in left.values() and set(left) == {d.address for d in daemons} - {two.address}


def test_all_of_two_mirrors_replace_a_dead_one_of_an_exchanged_address(mirrors, perseas):
    """W = 2, so commits wait until the owner has replaced it. The verdict knows who is silent. The
    roster lists the mirror that is left at the dead one's address, and a second order keeps it."""
    daemons = one, two, three = at_sockets(mirrors, 3)
    fill("bank", daemons[:2], {"a": KEPT}, acks=2)
    images = roster_of(daemons[:2])
    dead = images[two.address]
    with Store("bank", mirror_list(daemons[:2])) as store:
        store.map("a", 0)
        exchange(one, two)
        store.write("a", 0, b"more")
        two.kill9()
        assert not status_of("bank", daemons[:2])["verdict"]["can_commit"]
        order = ("roster", "replace", "bank", mirror_list(daemons), two.address, three.address,
                 "--gone")
        done = perseas(*order)
        assert done.status == OK, done
        store.write("a", 0, b"most")
        left = roster_of([one, three])
        assert dead not in left.values() and set(left) == {two.address, three.address}
    wait_ownerless("bank", [one, three])
    done = perseas(*order)
    assert done.status == OK and "nothing to do" in done.out, done
    assert roster_of([one, three]) == left


def test_a_store_is_not_made_twice_on_a_daemon(mirrors, perseas):
    """Both of its addresses are given, or two daemons have to be chosen from three."""
    one, two = mirrors(2)
    second = "localhost:%d" % one.mirror.port
    with pytest.raises(PerseasError) as caught:
        Store("bank", mirror_list([one, two]) + "," + second, flags=CREATE)
    assert caught.value.name == "PERSEAS_EINVAL"
    assert "%s and %s are the same mirror" % (one.address, second) in str(caught.value)
    daemons = ",".join([one.address, second, two.address])
    done = perseas("place", "--copies", "3", "--apart", "host", mirrors=daemons)
    assert done.status == NO, done
    assert "%s is the same daemon as %s" % (second, one.address) in done.err, done
