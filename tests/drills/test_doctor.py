"""perseas doctor on this host, whatever its state."""
import pytest

from drill import NO, OK, SECONDS, TOP, USAGE, mirror_list, wait_for
from test_command import NOBODY, say, serve, silent


def checks(done):
    """Returns {name: check}, after checking that counts and exit status agree."""
    told = done.json()
    results = [check["result"] for check in told["checks"]]
    assert results.count("fail") == told["failures"]
    assert results.count("warning") == told["warnings"]
    assert done.status == (NO if told["failures"] else OK), done
    return {check["name"]: check for check in told["checks"]}


def test_every_check_says_what_it_found_and_what_to_do(perseas):
    """No mirror is asked."""
    told = checks(perseas("doctor", "--json", "--connect-timeout", "500"))
    assert list(told) == ["core dumps", "recovery on demand", "written pages", "RDMA addresses",
                          "RemoveIPC"]
    for check in told.values():
        assert check["result"] in ("ok", "warning", "fail", "skipped") and check["found"], check
        assert check["advice"] or check["result"] in ("ok", "skipped"), check
    text = perseas("doctor", "--connect-timeout", "500").out
    assert all(name + ":" in text for name in told)
    assert all(len(line) <= 78 for line in text.splitlines() if " /" not in line)


def test_a_mirror_that_is_well(perseas, mirrors, fabric):
    daemon, = mirrors(1, fabric)
    mirror = checks(perseas("doctor", daemon.address, "--json"))["mirror " + daemon.address]
    assert mirror["result"] == "ok" and mirror["advice"] is None, mirror
    assert (TOP / "VERSION").read_text().strip() in mirror["found"]


@pytest.mark.parametrize("conversation, said, advice", [
    (say(b"PSSC" + (10).to_bytes(4, "little")), "speaks version 10", "Upgrade"),
    (say(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "is not a perseasd", "Give the port"),
    (silent, "said nothing in time", "systemctl start"),
], ids=["another version", "another protocol", "silence"])
def test_a_mirror_that_is_none_fails(perseas, mirrors, conversation, said, advice):
    """Next to a real mirror, and to one that is down."""
    daemons = mirrors(1)
    port, close = serve(conversation)

    def told():
        """Returns once both running peers have answered in time."""
        done = perseas("doctor", "--json", "--connect-timeout", "500", "--mirrors",
                       "%s,127.0.0.1:%d,%s" % (mirror_list(daemons), port, NOBODY))
        found = checks(done)
        assert done.status == NO, done
        return found["mirror " + daemons[0].address]["result"] == "ok" and \
            said in found["mirror 127.0.0.1:%d" % port]["found"] and found

    try:
        found = wait_for(told, SECONDS, "a mirror that is well and one that is none")
    finally:
        close()
    assert advice in found["mirror 127.0.0.1:%d" % port]["advice"]
    assert "is perseasd running there?" in found["mirror " + NOBODY]["found"]


def test_a_list_that_is_none_is_refused_before_anything_is_looked_at(perseas):
    """So is a directory that is not absolute."""
    for words in (["doctor", "host:"], ["doctor", "--memory-dir", "here"]):
        done = perseas(*words)
        assert done.status == USAGE and done.out == "", done
