"""Levels of stores, with real daemons: which level a new store gets, how an operator raises it, and
that a client without the store's key cannot create images of it."""
import re

import pytest

from binding import CREATE, PerseasError, Store
from drill import OK, run_command, status_of, wait_even
from teller import LOG, tellers  # noqa: F401

FABRICS = ["tcp", "shm", "tls"]
LAST_OF_LEVEL_0 = 8                     # the last protocol version that does not know level 1
OLD = "--protocol=%d" % LAST_OF_LEVEL_0


def level_of(store, daemons):
    return status_of(store, daemons)["level"]


def mirror_list(daemons):
    return ",".join(each.address for each in daemons)


def fill(store, daemons, value, segment="data"):
    with Store(store, mirror_list(daemons)) as opened:
        opened.map(segment, 4096)
        opened.publish()
        opened.write(segment, 0, bytes([value]) * 8)
        wait_even(store, daemons)


def read(store, daemons):
    with Store(store, mirror_list(daemons)) as opened:
        opened.map("data")
        return opened.read("data", 0, 8)


def test_a_new_store_gets_the_level_that_its_mirrors_know(mirrors):
    """Level 1; level 0 if requested, or if one daemon has the previous version."""
    daemons = mirrors(2)
    assert run_command("create", "high", mirrors=daemons).status == OK
    assert run_command("create", "low", "--level", "0", mirrors=daemons).status == OK
    assert [level_of(store, daemons) for store in ("high", "low")] == [1, 0]
    done = run_command("status", "low", mirrors=daemons)
    assert "perseas roster raise" in done.out
    for risk in ("a client that may create stores", "a restore that ends", "an earlier version",
                 "their own CRC-32C"):
        assert risk in done.out, done
    assert "roster raise" not in run_command("status", "high", mirrors=daemons).out
    mixed = mirrors(1) + mirrors(1, options=(OLD,))
    assert run_command("create", "mixed", mirrors=mixed).status == OK
    assert level_of("mixed", mixed) == 0
    done = run_command("create", "other", "--level", "2", mirrors=daemons)
    assert done.status != OK and "--level" in done.err


def test_an_operator_raises_a_store_that_has_no_owner(mirrors):
    """All contents are there, and the next owner finds level 1."""
    daemons = mirrors(3)
    assert run_command("create", "bank", "--level", "0", mirrors=daemons).status == OK
    fill("bank", daemons, 5)
    before = status_of("bank", daemons)["store_id"]
    done = run_command("roster", "raise", "bank", mirrors=daemons)
    assert done.status == OK and "level 1" in done.out, done
    assert level_of("bank", daemons) == 1
    assert status_of("bank", daemons)["store_id"] == before
    assert read("bank", daemons) == bytes([5]) * 8
    done = run_command("roster", "raise", "bank", mirrors=daemons)
    assert done.status == OK and "nothing to do" in done.out and "level 1" in done.out, done


def test_a_raise_gives_random_ids_to_later_segments_only(mirrors, tmp_path):
    """Mirrors, verify and a snapshot accept the older segment unchanged. A restored store has new
    ids."""
    daemons = mirrors(3)
    assert run_command("create", "bank", "--level", "0", mirrors=daemons).status == OK
    fill("bank", daemons, 5)
    assert run_command("roster", "raise", "bank", mirrors=daemons).status == OK
    fill("bank", daemons, 6, "later")
    ids = {each["name"]: each.get("random_id") for each in status_of("bank", daemons)["segments"]}
    assert ids["data"] is None and re.fullmatch("[0-9a-f]{32}", ids["later"]), ids
    assert read("bank", daemons) == bytes([5]) * 8
    assert run_command("verify", "bank", mirrors=daemons).status == OK
    file = tmp_path / "bank"
    assert run_command("snapshot", "bank", "--from", daemons[0].address, "--to", file).status == OK
    assert run_command("restore", file, "copy", mirrors=daemons).status == OK
    copied = {each["name"]: each["random_id"] for each in status_of("copy", daemons)["segments"]}
    assert len({ids["later"], copied["data"], copied["later"]}) == 3


@pytest.mark.parametrize("fabric", FABRICS)
def test_an_operator_raises_a_store_whose_owner_commits(mirrors, tellers, fabric):
    """No commit fails in the meantime, and the next owner finds all of them."""
    daemons = mirrors(3, fabric)
    assert run_command("create", "books", "--level", "0", mirrors=daemons).status == OK
    owner = tellers.run("books", daemons, LOG)
    owner.advances(100)
    done = run_command("roster", "raise", "books", mirrors=daemons)
    assert done.status == OK, done
    assert level_of("books", daemons) == 1
    owner.advances(100)
    owner.kill9()
    assert tellers.verify_images("books", daemons, owner.page) >= owner.page.acked


def test_a_store_is_not_raised_without_all_of_its_mirrors(mirrors):
    """One mirror is down; then it has the previous version. Nothing changes in either case."""
    daemons = mirrors(3)
    assert run_command("create", "bank", "--level", "0", mirrors=daemons).status == OK
    last = daemons[2]
    last.kill9()
    done = run_command("roster", "raise", "bank", mirrors=daemons)
    assert done.status != OK and last.address in done.err, done
    last.mirror.options = [*last.mirror.options, OLD]
    last.mirror.start()
    done = run_command("roster", "raise", "bank", mirrors=daemons)
    assert done.status != OK and last.address in done.err and "upgrade" in done.err, done
    assert level_of("bank", daemons) == 0
    last.kill9()
    last.mirror.options = last.mirror.options[:-1]
    last.mirror.start()
    assert run_command("roster", "raise", "bank", mirrors=daemons).status == OK


def test_what_does_not_know_level_1_leaves_such_a_store_alone(mirrors, monkeypatch):
    """An owner and a command of the previous version, and a downgraded daemon: they report it, the
    image is not changed, and the upgraded daemon serves it again."""
    daemons = mirrors(1)
    assert run_command("create", "bank", mirrors=daemons).status == OK
    fill("bank", daemons, 5)
    with monkeypatch.context() as old:
        old.setenv("PERSEAS_PROTOCOL", str(LAST_OF_LEVEL_0))
        done = run_command("status", "bank", mirrors=daemons)
        assert done.status != OK and "level 1" in done.err, done
        assert "bank" not in run_command("ls", mirrors=daemons).out
    daemon, = daemons
    assert daemon.terminate() == 0
    daemon.mirror.options = [*daemon.mirror.options, OLD]
    daemon.mirror.start()
    with pytest.raises(PerseasError) as error:
        Store("bank", daemon.address)
    assert "level 1" in str(error.value)
    with pytest.raises(PerseasError):
        Store("bank", daemon.address, flags=CREATE)
    assert daemon.terminate() == 0
    daemon.mirror.options = daemon.mirror.options[:-1]
    daemon.mirror.start()
    assert read("bank", daemons) == bytes([5]) * 8


def key_of(store, daemon):
    """Returns the key from the header file of the image: field 80 of Header, 32 bytes."""
    header = (daemon.memory / store / "header").read_bytes()
    key, = re.findall(rb"\x82\x05\x20(.{32})", header, re.S)
    return key


def test_the_key_is_told_to_nobody_who_only_looks(mirrors, tmp_path):
    """It is the same on all mirrors. No snapshot, log or output of the command contains it."""
    daemons = mirrors(2)
    assert run_command("create", "bank", mirrors=daemons).status == OK
    fill("bank", daemons, 5)
    key = key_of("bank", daemons[0])
    assert key_of("bank", daemons[1]) == key
    snapshot = tmp_path / "bank.snapshot"
    done = run_command("snapshot", "bank", "--from", daemons[0].address, "--to", str(snapshot))
    assert done.status == OK, done
    assert key not in snapshot.read_bytes()
    said = [daemon.log() for daemon in daemons]
    for words in (("status", "bank"), ("roster", "bank"), ("ls",)):
        said.append(run_command(*words, "--json", mirrors=daemons).out)
    assert not any(key.hex() in text.lower() for text in said)
    # A restored store, and one that is copied onto other mirrors, is another store with its own
    # key.
    done = run_command("restore", str(snapshot), "copy", mirrors=daemons)
    assert done.status == OK, done
    assert read("copy", daemons) == bytes([5]) * 8
    others = mirrors(1)
    done = run_command("recover", "bank", "--onto", others[0].address, mirrors=daemons)
    assert done.status == OK, done
    assert read("bank", others) == bytes([5]) * 8
    keys = {key, key_of("copy", daemons[0]), key_of("bank", others[0])}
    assert len(keys) == 3


def test_the_key_survives_a_spill_and_goes_to_a_new_mirror(mirrors, tmp_path):
    """The memory is lost, the spill is loaded, and the next owner copies to another mirror."""
    daemons = mirrors(1, options=("--spill-dir", str(tmp_path / "spill"))) + mirrors(1)
    first, second = daemons
    assert run_command("create", "bank", mirrors=[first]).status == OK
    fill("bank", [first], 5)
    key = key_of("bank", first)
    assert first.terminate() == 0
    first.lose_memory()
    first.mirror.start()
    done = run_command("roster", "add", "bank", first.address, second.address)
    assert done.status == OK, done
    assert key_of("bank", first) == key_of("bank", second) == key
    assert read("bank", daemons) == bytes([5]) * 8
