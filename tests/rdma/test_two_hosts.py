"""The drill on two hosts of deploy/roce.md, command by command as it stands there, in two VMs."""
import os
import pathlib
import re

from machine import Pair
from qemu import TREE

BUILD = pathlib.Path(os.environ.get("PERSEAS_BUILD", TREE / "build"))
GUIDE = TREE / "deploy/roce.md"
TITLE = "Soft-RoCE on two hosts"
SECONDS = 240                           # for what takes one, where nobody emulates it
UNTIL_IT_COMMITS = ("until [ \"$(od -An -tu8 -N8 /tmp/acked 2>&1)\" -gt 20 ] 2>/dev/null || "
                    "! kill -0 $!; do sleep 1; done\n")


def blocks():
    """The commands of the section: on both hosts, B's mirrors, A's bank, its end, B's recovery."""
    section = re.search(r"^##+ %s\n(.*?)(?=^##|\Z)" % TITLE, GUIDE.read_text(), re.M | re.S)[1]
    section = section.replace("192.0.2.", "10.6.0.").replace("eth1", "n1")
    section = section.replace("build/", "%s/" % BUILD)
    found = [re.sub("^    ", "", block, flags=re.M)
             for block in re.findall(r"(?:^    .*\n)+", section, re.M)]
    assert len(found) == 5
    return found


def shell(machine, *scripts):
    return machine.start("bash", "-c", "".join(scripts))


def test_the_guides_drill_holds():
    """The bank is killed on host A while it commits; host B goes on with all that was acknowledged.
    Where a person looks until the bank commits, so does this."""
    both, serve, bank, kill, recover = blocks()
    bank = bank.replace("\nod", "\n" + UNTIL_IT_COMMITS + "od", 1)
    with Pair(seen=[BUILD]) as (a, b):
        for machine in (a, b):
            machine.run(TREE / "deploy/perseas-rxe", "down")
        mirrors = shell(b, both, serve, "wait\n")
        for port in (7171, 7172, 7173):
            mirrors.wait_for_text("listening at tcp://10.6.0.2:%d" % port, SECONDS)
        owner = shell(a, both, bank, kill)
        owner.wait(SECONDS)
        # Two of the three are enough for commits; on a busy host one may just be coming back.
        assert len(re.findall("^rdma://.*[0-9] rdma$", owner.text, re.M)) >= 2, owner.text
        counted = int(re.findall("^ +([0-9]+)$", owner.text, re.M)[-1])
        told = shell(b, both, recover).check(SECONDS)
        assert "no live owner is seen" in told and "3 of 3 mirrors hold the same" in told
        held = int(re.search("^([0-9]+) transactions; .*all right: true", told, re.M)[1])
        assert 20 < counted <= held <= counted + 1, told
