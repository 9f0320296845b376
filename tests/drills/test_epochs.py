"""Stores whose epochs were spoilt because an older version allowed it, and their recovery."""
from binding import Store
from drill import NO, OK, fill, mirror_list, run_command, status_of
from test_recover import crc32c

EPOCH_MAX = (1 << 63) - 1
HEAD = 24                       # bytes before the packed Header
PROMISED_EPOCH = 4              # field of Header in control.proto


def varint(number):
    more = b""
    while number > 0x7f:
        more += bytes([number & 0x7f | 0x80])
        number >>= 7
    return more + bytes([number])


def add_to_header(daemon, store, more):
    """The image's header gets these fields while the daemon is down. Of a field that comes twice
    the last one counts, and what stands in it is added to what stands in the first."""
    daemon.kill9()
    path = daemon.memory / store / "header"
    data = path.read_bytes()
    length = int.from_bytes(data[12:16], "little")
    packed = data[HEAD:HEAD + length] + more
    head = data[:12] + len(packed).to_bytes(4, "little") + crc32c(packed).to_bytes(4, "little")
    path.write_bytes(head + bytes(4) + packed)
    daemon.restart()


def spoil(daemon, store, epoch):
    """Sets this promised epoch in the daemon's image."""
    add_to_header(daemon, store, varint(PROMISED_EPOCH << 3) + varint(epoch))


def test_one_spoilt_image_is_dropped_and_made_anew(mirrors):
    daemons = mirrors(3)
    fill("s", daemons, {"accounts": b"in good order"})
    spoil(daemons[1], "s", EPOCH_MAX)
    with Store("s", mirror_list(daemons)) as store:
        assert store.map("accounts", 13)
        assert store.read("accounts", 0, 13) == b"in good order"
    done = run_command("recover", "s", mirrors=daemons)
    assert done.status == OK and "drop this image" in done.out, done
    assert run_command("drop", "s", daemons[1].address, "--yes").status == OK
    done = run_command("recover", "s", mirrors=daemons)
    assert done.status == OK and "on 3 of 3 mirrors" in done.out, done
    assert max(m["promised_epoch"] for m in status_of("s", daemons)["mirrors"]) < 100


def test_a_store_that_is_spoilt_everywhere_is_made_again(mirrors, tmp_path):
    """As recover --help says: a snapshot, which needs no claim, is restored as a new store."""
    daemons = mirrors(2)
    fill("s", daemons, {"accounts": b"in good order"})
    for daemon in daemons:
        spoil(daemon, "s", EPOCH_MAX)
    done = run_command("recover", "s", mirrors=daemons)
    assert done.status != OK and "perseas recover --help" in done.err, done
    assert run_command("drop", "s", daemons[1].address).status == NO
    file = tmp_path / "s.perseas"
    done = run_command("snapshot", "s", "--from", daemons[0].address, "--to", file)
    assert done.status == OK, done
    assert run_command("snapshot", "--check", file).status == OK
    for daemon in daemons:
        assert run_command("drop", "s", daemon.address, "--yes").status == OK
    done = run_command("restore", file, "s", mirror_list(daemons))
    assert done.status == OK, done
    with Store("s", mirror_list(daemons)) as store:
        store.map("accounts", 13)
        assert store.read("accounts", 0, 13) == b"in good order"
