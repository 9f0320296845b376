"""A mirror that was away while the store got another owner is compared with it by digests, and sent
only what differs."""
import ctypes

import pytest

from binding import CREATE, Store
from drill import (FABRICS, MIB, OK, SECONDS, WITH_TLS, mirror_list, status_of, wait_even,
                   wait_for)
from teller import LOG, tellers, until  # noqa: F401

SIZE = 16 * MIB


class Event(ctypes.Structure):
    """struct perseas_event."""
    _fields_ = [("kind", ctypes.c_int), ("missed", ctypes.c_uint32), ("seq", ctypes.c_uint64),
                ("mirror", ctypes.c_char * 256), ("text", ctypes.c_char * 256)]


ON_EVENT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Event))


@pytest.mark.parametrize("fabric", WITH_TLS)
def test_a_mirror_of_another_owner_is_sent_what_differs(mirrors, perseas, fabric):
    """The owner reports that the mirror is sent what differs. Afterward all images are equal."""
    daemons = mirrors(3, fabric)
    with Store("books", mirror_list(daemons), flags=CREATE) as store:
        store.map("large", SIZE)
        store.publish()
        wait_even("books", daemons)
        daemons[1].kill9()
        store.write("large", 5 * MIB, b"while the mirror was away")
    told = []
    note = ON_EVENT(lambda _, event: told.append(event[0].text.decode()))
    with Store("books", mirror_list(daemons), on_event=ctypes.cast(note, ctypes.c_void_p)) as store:
        store.map("large")
        store.write("large", 7 * MIB, b"by the next owner")
        daemons[1].restart()
        wait_for(lambda: store.stat().resyncs == 1, SECONDS, "a mirror that is up to date")
        assert store.read("large", 5 * MIB, 9) == b"while the"
    assert any("is being sent what differs by digests: it was not adopted by this owner" in text
               for text in told), told
    done = perseas("verify", "books", mirrors=daemons)
    assert done.status == OK, done


@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("fabric", FABRICS)
def test_digests_hold_up_no_takeover(mirrors, perseas, tellers, fabric, dies):
    """An owner is killed, or fenced, in the middle of a comparison that would take it years. The
    next owner opens the store, has all that was acknowledged, and brings the mirror up to date."""
    daemons = mirrors(3, fabric)

    def is_compared():
        owner = status_of("books", daemons)["owner"] or {}
        return any("being compared by digests" in mirror["trouble"]
                   for mirror in owner.get("mirrors", ()))

    first, second, third = (tellers.desk() for _ in range(3))
    first.open("books", daemons, "create", LOG)
    first.books()
    first.run(50)
    wait_even("books", daemons)
    daemons[2].kill9()
    done = first.run(20)
    first.ask("close")
    second.open("books", daemons, "resync-rate=1")
    assert second.books() == done
    daemons[2].restart()
    until(is_compared, "a mirror that is compared")
    done = second.run(20)
    assert is_compared()
    if dies:
        second.kill9()
    third.open("books", daemons, "takeover")
    assert third.books() == done
    until(lambda: third.all_live(3), "three live mirrors")
    figures = third.figures()
    assert sum(figures[how] for how in
               ("mended_forward", "mended_delta", "mended_whole", "resyncs")) == 1, figures
    done = third.run(20)
    third.settle()
    assert third.check() == done
    third.exit()
    assert perseas("verify", "books", mirrors=daemons).status == OK


@pytest.mark.parametrize("fabric", FABRICS)
def test_a_former_member_is_sent_what_differs(mirrors, perseas, fabric):
    """A mirror leaves the roster and joins again, while the store changes. Its image becomes
    another one, and is whole."""
    daemons = mirrors(3, fabric)
    others = mirror_list(daemons[:2])
    with Store("books", mirror_list(daemons), flags=CREATE) as store:
        store.map("large", SIZE)
        store.publish()
        store.write("large", 0, b"large" * 1000)
        wait_even("books", daemons)
        before = status_of("books", daemons[2:])["mirrors"][0]["image_id"]
        assert perseas("roster", "remove", "books", others, daemons[2].address).status == OK
        store.write("large", 5 * MIB, b"while the mirror was no member")
        assert perseas("roster", "add", "books", others, daemons[2].address).status == OK
        store.write("large", 7 * MIB, b"afterward")
        store.flush()
        figures = store.stat()
        assert (figures.resyncs, figures.live) == (1, 3)
        assert figures.resync_bytes == 64 << 10, figures.resync_bytes
    told = status_of("books", daemons)
    assert before not in [member["image_id"] for member in told["roster"]["members"]]
    assert perseas("verify", "books", mirrors=daemons).status == OK
    daemons[0].kill9()
    with Store("books", mirror_list(daemons[1:])) as store:
        store.map("large")
        assert store.read("large", 5 * MIB, 9) == b"while the"
        assert store.read("large", 7 * MIB, 9) == b"afterward"
