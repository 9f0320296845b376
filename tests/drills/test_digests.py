"""A mirror that was away while the store got another owner is compared with it by digests, and sent
only what differs."""
import ctypes

import pytest

from binding import CREATE, Store
from drill import MIB, OK, SECONDS, WITH_TLS, mirror_list, wait_for

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
