"""perseas --json: every command that asks mirrors prints one object, even when it fails."""
from binding import CREATE, Store
from drill import NO, OK, PARTLY, fill, mirror_list, status_of


def test_a_store_is_made_copied_and_restored(perseas, mirrors, tmp_path):
    """create, snapshot, snapshot --check and restore; the list is an argument or --mirrors."""
    daemons = mirrors(2)
    addresses = [d.address for d in daemons]
    made = perseas("create", "s", mirror_list(daemons), "--json")
    assert made.status == OK and made.json() == {"store": "s", "mirrors": addresses}, made
    fill("t", daemons, {"accounts": b"contents" * 1000})
    taken = perseas("snapshot", "t", "--from", addresses[0], "--to", tmp_path / "t",
                    "--json").json()
    assert (taken["seq"], taken["segments"], taken["bytes"]) == (2, 1, 8000), taken
    assert taken["mirror"] == addresses[0] and taken["file_bytes"] > 8000
    checked = perseas("snapshot", "--check", tmp_path / "t", "--json").json()
    assert checked == {"file": str(tmp_path / "t"), "store": "t", "epoch": 1, "seq": 2,
                       "time": taken["time"], "segments": 1, "bytes": 8000}
    back = perseas("restore", tmp_path / "t", "u", mirror_list(daemons), "--json").json()
    assert back["mirrors"] == addresses and back["alike"] == 2, back
    assert (back["of_store"], back["of_epoch"], back["of_seq"]) == ("t", 1, 2)


def test_verify_says_what_differs(perseas, mirrors):
    """Equal images; then a byte changed behind a daemon's back; then the other mirror is down."""
    daemons = mirrors(2)
    fill("s", daemons, {"accounts": b"contents" * 1000})
    done = perseas("verify", "s", "--json", mirrors=daemons)
    told = done.json()
    assert done.status == OK and told["result"] == "same" and told["findings"] == [], done
    assert (told["compared"], told["mirrors"], told["bytes"], told["seq"]) == (2, 2, 8000, 2)
    path, = (daemons[1].memory / "s").glob("segment-*")
    with open(path, "r+b") as file:
        file.seek(5)
        file.write(b"\0")
    done = perseas("verify", "s", "--json", mirrors=daemons)
    finding, = [f for f in done.json()["findings"] if f["mirror"] == daemons[1].address]
    assert done.status == NO and done.json()["result"] == "different", done
    assert finding["segment"] == "accounts" and finding["what"] == "differs"
    daemons[0].kill9()
    done = perseas("verify", "s", "--json", mirrors=daemons)
    assert done.status == PARTLY and done.json()["result"] == "inconclusive", done


def test_recover_tells_the_state_that_it_found(perseas, mirrors, tmp_path):
    """Recovers in place, into files, and onto another mirror."""
    daemons, other = mirrors(2), mirrors(1)
    fill("s", daemons, {"accounts": b"contents" * 1000})
    told = perseas("recover", "s", "--json", mirrors=daemons).json()
    assert (told["store"], told["epoch"], told["seq"], told["live"]) == ("s", 2, 2, 2), told
    assert daemons[0].address in told["report"]
    told = perseas("recover", "s", "--to", tmp_path / "out", "--json", mirrors=daemons).json()
    assert (told["seq"], told["segments"], told["to"]) == (2, 1, str(tmp_path / "out"))
    told = perseas("recover", "s", "--onto", other[0].address, "--as", "t", "--json",
                   mirrors=daemons).json()
    assert (told["as"], told["onto"], told["alike"]) == ("t", [other[0].address], 1), told


def test_the_roster_and_its_changes(perseas, mirrors):
    """Shows the roster; changes it without an owner, and with one."""
    daemons, extra = mirrors(2), mirrors(2)
    fill("s", daemons, {"accounts": b"contents"})
    told = perseas("roster", "s", "--json", mirrors=daemons).json()
    assert [m["address"] for m in told["roster"]["members"]] == [d.address for d in daemons]
    assert [m["state"] for m in told["roster"]["members"]] == ["consistent"] * 2
    assert told["roster"]["acks"] == 2 and told["next_roster"] is None
    told = perseas("roster", "add", "s", mirror_list(daemons), extra[0].address, "--json").json()
    assert (told["change"], told["with"], told["address"]) == ("add", extra[0].address, None)
    with Store("s", mirror_list(daemons + extra[:1])) as store:
        store.map("accounts")
        told = perseas("roster", "replace", "s", mirror_list(daemons + extra[:1]),
                       daemons[0].address, extra[1].address, "--json").json()
        assert (told["change"], told["address"]) == ("replace", daemons[0].address)


def test_an_image_is_dropped_and_a_mirror_spilled(perseas, mirrors, tmp_path):
    """drop without --yes and with it; spill."""
    daemons = mirrors(1, options=["--spill-dir", str(tmp_path)])
    fill("s", daemons, {"accounts": b"contents"})
    Store("t", mirror_list(daemons), flags=CREATE).close()
    image = status_of("s", daemons)["mirrors"][0]["image_id"]
    for words, status in (([], NO), (["--yes"], OK)):
        done = perseas("drop", "s", daemons[0].address, "--json", *words)
        told = done.json()
        assert done.status == status and told["deleted"] == (status == OK), done
        assert told["image_id"] == image and told["listed"] and told["slot"]["seq"] == 2
    told = perseas("spill", daemons[0].address, "--json").json()
    assert told["mirror"] == daemons[0].address and told["stores"] == 1, told
    assert told["directory"] == str(tmp_path) and told["bytes"] > 0
