"""The number of mirrors n and W before and after a change of the roster: what is decided, reported
and warned of."""
import pytest

from binding import Store
from drill import FAILURE, NO, OK, USAGE, fill, mirror_list, status_of

GROWN = ("W 1 of 1 -> 2 of 2; R 1 -> 1", "W 2 of 2 -> 2 of 3; R 1 -> 2")
EITHER = "with two mirrors and W = 2 the loss of either stops commits"


def size(store, daemons):
    """Returns n and W from the roster."""
    roster = status_of(store, daemons)["roster"]
    return roster["mirrors"], roster["acks"]


def promises(name, daemons):
    return [mirror["promised_epoch"] for mirror in status_of(name, daemons)["mirrors"]]


def grow(perseas, daemons):
    """Adds the second and the third daemon."""
    first = perseas("roster", "add", "s", daemons[0].address, daemons[1].address)
    assert first.status == OK and GROWN[0] in first.out and EITHER in first.out, first
    assert size("s", daemons) == (2, 2)
    second = perseas("roster", "add", "s", daemons[0].address, daemons[2].address)
    assert second.status == OK and GROWN[1] in second.out and EITHER not in second.out, second
    assert size("s", daemons) == (3, 2)


def test_a_store_that_its_owner_grows_keeps_a_majority(perseas, mirrors):
    """From one mirror to three, while the owner has the store open."""
    daemons = mirrors(3)
    fill("s", daemons[:1], {"accounts": b"contents"})
    with Store("s", daemons[0].address):
        grow(perseas, daemons)


def test_a_store_without_an_owner_keeps_a_majority_too(perseas, mirrors):
    """And when it shrinks again."""
    daemons = mirrors(3)
    fill("s", daemons[:1], {"accounts": b"contents"})
    grow(perseas, daemons)
    done = perseas("roster", "remove", "s", mirror_list(daemons), daemons[2].address, "--json")
    assert done.status == OK, done
    told = done.json()
    assert told["before"] == {"mirrors": 3, "acks": 2, "claims": 2}
    assert told["after"] == {"mirrors": 2, "acks": 2, "claims": 1}


@pytest.mark.parametrize("owned", [False, True])
def test_a_dry_run_says_what_the_sizes_would_be(perseas, mirrors, owned):
    """It changes nothing, and refuses what the change would refuse."""
    daemons = mirrors(2)
    one, two = (daemon.address for daemon in daemons)
    fill("s", daemons[:1], {"accounts": b"contents"})
    owner = Store("s", one) if owned else None
    done = perseas("roster", "add", "s", one, two, "--dry-run")
    assert done.status == OK and GROWN[0] in done.out and EITHER in done.out, done
    assert ("an owner of the version before would keep W = 1" in done.out) == owned
    told = perseas("roster", "add", "s", one, two, "--dry-run", "--acks", "1", "--json").json()
    assert told["dry_run"] and told["after"] == {"mirrors": 2, "acks": 1, "claims": 2}
    for words, why in ((("remove", "s", one, one), "a store needs a mirror"),
                       (("remove", "s", one, two), "the roster has no mirror"),
                       (("add", "s", one, one, "--acks", "2"), "in the roster already"),
                       (("add", "s", one, two, "--acks", "3"), "cannot give 3")):
        done = perseas("roster", *words, "--dry-run")
        assert done.status == NO and why in done.err, done
    done = perseas("roster", "add", "s", one, one, "--dry-run")
    assert done.status == OK and "nothing to do" in done.out, done
    assert perseas("roster", "s", one, "--dry-run").status == USAGE
    assert size("s", daemons) == (1, 1)
    if owner:
        owner.close()


def test_a_change_that_is_refused_claims_nothing(perseas, mirrors, monkeypatch):
    """In a store without an owner, the command would have to open it for a change."""
    monkeypatch.setenv("PERSEAS_RDMA", "off")
    daemons, (new,) = mirrors(2), mirrors(1)
    one, two = (daemon.address for daemon in daemons)
    fill("s", daemons, {"accounts": b"contents"})
    before = promises("s", daemons)
    for words, why in ((("remove", new.address), "the roster has no mirror"),
                       (("replace", new.address, new.address), "the roster has no mirror"),
                       (("add", one, "--acks", "1"), "in the roster already"),
                       (("add", new.address, "--acks", "4"), "cannot give 4"),
                       (("add", "rdma://" + new.mirror.tcp), "; without RDMA it is tcp://"),
                       (("replace", one, two), "in the roster already")):
        done = perseas("roster", words[0], "s", mirror_list(daemons), *words[1:])
        assert done.status in (NO, FAILURE) and why in done.err, done
        assert promises("s", daemons) == before, done
    assert size("s", daemons) == (2, 2)


@pytest.mark.parametrize("owned", [False, True])
def test_a_change_that_was_made_is_told_from_a_mistyped_one(perseas, mirrors, owned):
    """Each change is repeated, as a script does that was killed, and does not change the roster.
    What the roster contradicts is refused."""
    daemons = mirrors(3)
    one, two, three = (daemon.address for daemon in daemons)
    assert perseas("create", "s", "--level", "0", mirrors=daemons[:1]).status == OK
    owner = Store("s", one) if owned else None
    for words in (("add", one, two), ("replace", one + "," + two, two, three, "--gone"),
                  ("remove", one + "," + three, three), ("raise", one)):
        first, again = (perseas("roster", words[0], "s", *words[1:]) for _ in range(2))
        assert first.status == OK and "nothing to do" not in first.out, first
        assert again.status == OK and "nothing to do: the roster of store 's'" in again.out, again
    told = perseas("roster", "raise", "s", one, "--json").json()["told"]
    assert told == "nothing to do: the roster of store 's' has W = 1, level 1: " + one
    done = perseas("roster", "cancel", "s", one)
    assert done.status == OK and "nothing to do" in done.out, done
    for words in (("remove", one, two), ("add", one, one, "--acks", "2"),
                  ("replace", one, two, three), ("replace", one, one, one)):
        done = perseas("roster", words[0], "s", *words[1:])
        assert done.status == NO and "roster" in done.err, done
    assert size("s", daemons[:1]) == (1, 1)
    if owner:
        owner.close()


@pytest.mark.parametrize("words", ["remove s {list} {alias}", "replace s {list} {alias} {one}"])
def test_a_member_under_another_address_has_not_left(perseas, mirrors, words):
    """The mirror does not answer, and the address is in the list, but not in the roster."""
    daemons = mirrors(3)
    assert perseas("create", "s", mirrors=daemons).status == OK
    alias = daemons[2].mirror.unix
    daemons[2].kill9()
    done = perseas("roster", *words.format(list=mirror_list(daemons[:2]) + "," + alias,
                                           alias=alias, one=daemons[0].address).split())
    assert done.status == NO and "the roster has no mirror" in done.err, done


def test_a_member_is_named_as_the_list_names_it(perseas, mirrors):
    """By an address other than the roster's."""
    daemons = mirrors(2)
    fill("s", daemons, {"accounts": b"contents"})
    other = daemons[1].mirror.unix
    done = perseas("roster", "remove", "s", daemons[0].address + "," + other, other)
    assert done.status == OK and size("s", daemons[:1]) == (1, 1), done


def test_an_owner_that_tells_no_sizes_is_named(perseas, mirrors, monkeypatch):
    """An owner of the previous version."""
    daemons = mirrors(2)
    assert perseas("create", "s", "--level", "0", mirrors=daemons[:1]).status == OK
    monkeypatch.setenv("PERSEAS_PROTOCOL", "8")
    with Store("s", daemons[0].address):
        monkeypatch.delenv("PERSEAS_PROTOCOL")
        done = perseas("roster", "add", "s", daemons[0].address, daemons[1].address)
        assert done.status == OK and "tells no W" in done.out, done


def test_one_acknowledgement_of_several_mirrors_is_warned_of(perseas, mirrors):
    """By status and by doctor, but not for a store with one mirror or with W = 2."""
    daemons = mirrors(2)
    words = "W = 1 of 2: a commit rests on one mirror alone"
    assert perseas("create", "s", "--acks", "1", mirrors=daemons).status == OK
    assert words in perseas("status", "s", mirrors=daemons).out
    assert words in status_of("s", daemons)["roster"]["warning"]
    checks = perseas("doctor", mirror_list(daemons), "--json").json()["checks"]
    found = [check for check in checks if check["name"] == "mirror " + daemons[0].address]
    assert found[0]["result"] == "warning" and words in found[0]["advice"], found
    assert perseas("create", "t", mirrors=daemons).status == OK
    assert perseas("create", "u", mirrors=daemons[:1]).status == OK
    for store in "tu":
        assert status_of(store, daemons)["roster"]["warning"] is None
    assert perseas("status", "nobody", mirrors=daemons).status == NO
