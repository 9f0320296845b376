"""Daemons are counted by their identities, and not by the addresses that lead to them."""
import os
import shutil

import pytest

from binding import CREATE, Store
from drill import OK, mirror_list


def identities(daemons, perseas, *words):
    """What each address tells of the daemon that it leads to."""
    done = perseas(*words, "--json", mirrors=daemons)
    return [mirror["daemon"] for mirror in done.json()["mirrors"]]


def test_each_answer_tells_which_daemon_it_is_from(mirrors, perseas):
    """Whichever address was asked, with the store or without it, and after a restart."""
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
    """What `cp -a` makes has all bytes of the original, and neither its inodes nor their ages."""
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


@pytest.mark.parametrize("version", [7, 8])
def test_a_daemon_of_an_older_version_tells_no_identity(mirrors, perseas, version):
    """It is asked and used as before."""
    one, two = mirrors(2)
    assert one.terminate() == 0
    one.mirror.options = [*one.mirror.options, "--protocol=%d" % version]
    one.mirror.start()
    with Store("bank", mirror_list([one, two]), flags=CREATE):
        done = perseas("status", "bank", "--json", mirrors=[one, two])
    assert done.status == OK
    told = [mirror["daemon"] for mirror in done.json()["mirrors"]]
    assert told[0] is None and told[1]
