"""The commands that change what mirrors have: roster, drop, spill; and what status tells of a live
owner's mirrors."""
import pytest

from binding import CREATE, PerseasError, Store
from drill import (FAILURE, NO, OK, PARTLY, SECONDS, fill, mirror_list, run_command, status_of,
                   wait_even, wait_for)


# --- drop ---

def test_drop_says_what_it_would_delete_and_deletes_only_with_yes(perseas, mirrors):
    """One of three mirrors; the other two are not touched, and the store opens on them."""
    daemons = mirrors(3)
    fill("s", daemons, {"accounts": b"contents"})
    before = status_of("s", daemons)
    done = perseas("drop", "s", daemons[1].address)
    assert done.status == NO and "nothing is deleted without --yes" in done.err, done
    assert "would delete the image %s of store 's'" % before["mirrors"][1]["image_id"] in done.out
    assert "one of the 3 images" in done.out and "W = 2" in done.out
    assert status_of("s", daemons) == before
    done = perseas("drop", "s", daemons[1].address, "--yes")
    assert done.status == OK and "deleted the image" in done.out, done
    assert [m["has_store"] for m in status_of("s", daemons)["mirrors"]] == [True, False, True]
    assert perseas("drop", "s", daemons[1].address, "--yes").status == NO
    with Store("s", mirror_list(daemons)) as store:
        store.map("accounts")
        assert store.read("accounts", 0, 8) == b"contents"


def test_a_dropped_store_is_gone_from_memory_and_may_be_made_again(perseas, mirrors):
    """Its files go, and the mirror's memory is free again."""
    daemons = mirrors(1)
    fill("s", daemons, {"accounts": b"contents"})
    assert perseas("drop", "s", "--mirrors", daemons[0].address, "--yes").status == OK
    assert not (daemons[0].memory / "s").exists()
    assert perseas("ls", "--json", mirrors=daemons).json()["mirrors"][0]["memory_used"] == 0
    with pytest.raises(PerseasError):
        Store("s", mirror_list(daemons))
    assert perseas("create", "s", mirrors=daemons).status == OK


def test_a_damaged_image_is_dropped_by_its_name(perseas, mirrors):
    """Its header cannot be read, so nobody knows its ids; the store is mended when it is gone."""
    daemons = mirrors(3)
    fill("s", daemons, {"accounts": b"contents"})
    daemons[2].kill9()
    header = daemons[2].memory / "s/header"
    header.write_bytes(b"?" * header.stat().st_size)
    daemons[2].restart()
    done = perseas("drop", "s", daemons[2].address)
    assert done.status == NO and "nothing is deleted without --yes" in done.err, done
    assert "the image of store s is damaged" in done.out, done
    assert header.exists()
    done = perseas("drop", "s", daemons[2].address, "--yes")
    assert done.status == OK and "deleted the damaged image of store 's'" in done.out, done
    assert not header.exists()
    assert perseas("recover", "s", mirrors=daemons).status == OK
    assert perseas("verify", "s", mirrors=daemons).status == OK


def test_drop_refuses_an_image_with_a_live_owner(perseas, mirrors, fabric):
    """The owner goes on."""
    daemons = mirrors(2, fabric)
    with Store("s", mirror_list(daemons), flags=CREATE) as store:
        store.map("accounts", 4096)
        store.publish()
        done = perseas("drop", "s", daemons[0].address, "--yes")
        assert done.status == NO and "has a live owner" in done.err, done
        store.write("accounts", 0, b"contents")
        wait_even("s", daemons)


# --- spill ---

def test_spill_writes_the_images_and_ends_the_mirror(perseas, mirrors, tmp_path):
    """One of two; it starts again with what it had."""
    spilling = mirrors(1, options=["--spill-dir", str(tmp_path)])
    daemons = spilling + mirrors(1)
    fill("s", daemons, {"accounts": b"contents" * 1000})
    done = perseas("spill", daemons[0].address)
    assert done.status == OK and "1 store, " in done.out and str(tmp_path) in done.out, done
    wait_for(lambda: not daemons[0].running(), SECONDS, "the mirror's end")
    assert [each.name for each in tmp_path.glob("*.spill")] == ["s.spill"]
    daemons[0].lose_memory()
    daemons[0].restart()
    assert list(tmp_path.glob("*.spill")) == []
    assert perseas("recover", "s", mirrors=daemons).status == OK
    assert perseas("verify", "s", mirrors=daemons).status == OK


def test_a_mirror_without_a_spill_directory_refuses(perseas, mirrors):
    """And goes on; one that is down is named."""
    daemons = mirrors(1)
    done = perseas("spill", daemons[0].address)
    assert done.status != OK and daemons[0].address in done.err, done
    assert daemons[0].running()
    daemons[0].kill9()
    done = perseas("spill", daemons[0].address)
    assert done.status == FAILURE and daemons[0].address in done.err, done


# --- roster ---

def test_roster_shows_the_mirrors_of_a_store(perseas, mirrors):
    """All of them, also where only some are asked; who does not answer is named."""
    daemons = mirrors(3)
    fill("s", daemons, {"accounts": b"contents"})
    done = perseas("roster", "s", mirror_list(daemons))
    assert done.status == OK and "W = 2 of 3" in done.out, done
    assert all(d.address in done.out for d in daemons)
    done = perseas("roster", "s", mirrors=daemons[:1])
    assert done.status == OK and done.out.count("not seen") == 2, done
    daemons[2].kill9()
    done = perseas("roster", "s", mirrors=daemons)
    assert done.status == PARTLY and daemons[2].address in done.err, done
    assert perseas("roster", "t", mirrors=daemons[:2]).status == NO


def members(store, daemons):
    """The addresses, W, and whether no change is under way."""
    told = status_of(store, daemons)["roster"]
    return {m["address"] for m in told["members"]}, told["acks"], told["settled"]


@pytest.fixture(params=["live", "resting"])
def held(request, mirrors):
    """(three mirrors and a fourth, the open store or None); with an owner, or without."""
    daemons, extra = mirrors(3), mirrors(1)
    fill("s", daemons, {"accounts": b"contents" * 1000})
    if request.param == "resting":
        yield daemons, extra[0], None
        return
    with Store("s", mirror_list(daemons)) as store:
        store.map("accounts")
        yield daemons, extra[0], store


def contents_are_good(store, daemons, owner):
    """Whoever opens it now finds what was there, and all mirrors hold the same."""
    if owner:
        owner.write("accounts", 0, b"more....")
        wait_even(store, daemons)
    assert run_command("verify", store, mirrors=daemons).status == OK


def test_a_mirror_is_replaced(perseas, held):
    """The new one holds everything; the old one's image counts for nothing."""
    daemons, extra, owner = held
    done = perseas("roster", "replace", "s", mirror_list(daemons), daemons[2].address,
                   extra.address)
    assert done.status == OK, done
    now = daemons[:2] + [extra]
    assert members("s", now) == ({d.address for d in now}, 2, True)
    contents_are_good("s", now, owner)
    assert "not in the roster" in perseas("status", "s", mirrors=daemons).out


def test_a_mirror_is_added_and_removed_again(perseas, held):
    """W follows where it is told to."""
    daemons, extra, owner = held
    done = perseas("roster", "add", "s", mirror_list(daemons), extra.address, "--acks", "3")
    assert done.status == OK, done
    every = daemons + [extra]
    assert members("s", every) == ({d.address for d in every}, 3, True)
    contents_are_good("s", every, owner)
    done = perseas("roster", "remove", "s", mirror_list(every), daemons[0].address, "--acks", "2")
    assert done.status == OK, done
    assert members("s", every[1:]) == ({d.address for d in every[1:]}, 2, True)
    contents_are_good("s", every[1:], owner)


def test_a_change_that_cannot_be_is_refused_with_a_sentence(perseas, held):
    """One that is not in the roster leaves; one that is comes; a W that does not fit; a mirror
    that is down comes. The roster stays as it is."""
    daemons, extra, owner = held
    before = members("s", daemons)
    for words in (["remove", extra.address], ["add", daemons[0].address],
                  ["add", extra.address, "--acks", "9"], ["add", "127.0.0.1:1"]):
        done = perseas("roster", words[0], "s", mirror_list(daemons), *words[1:])
        assert done.status not in (OK, PARTLY) and len(done.err) > 20, (words, done)
    assert members("s", daemons) == before
    contents_are_good("s", daemons, owner)


# --- what a live owner tells ---

def test_status_shows_the_mirrors_as_their_owner_sees_them(perseas, mirrors):
    """All live; then one is down."""
    daemons = mirrors(3)

    def seen():
        owner = status_of("s", daemons[:2])["owner"]
        return [m["state"] for m in owner["mirrors"]] if owner else []

    with Store("s", mirror_list(daemons), flags=CREATE) as store:
        store.map("accounts", 4096)
        store.publish()
        wait_for(lambda: seen() == ["live"] * 3, SECONDS, "a report of three live mirrors")
        owner = status_of("s", daemons)["owner"]
        assert [m["address"] for m in owner["mirrors"]] == [d.address for d in daemons]
        assert owner["order"] is None and all(m["resync"] is None for m in owner["mirrors"])
        assert "AS ITS OWNER SEES IT" in perseas("status", "s", mirrors=daemons).out
        daemons[2].kill9()
        wait_for(lambda: seen() == ["live", "live", "down"], SECONDS, "a report of one down")
    assert status_of("s", daemons[:2])["owner"] is None
