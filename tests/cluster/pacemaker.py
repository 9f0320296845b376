"""What drills with Pacemaker and Corosync share: three nodes of nodes.py that run them, without
STONITH and with no-quorum-policy=ignore, and mirrors as a clone. tests/cluster calls it. It never
says that a store is well: Pacemaker alone does not know that.
"""
import re

from nodes import SECONDS, Fleet, wait_for

PORT = 7170

COROSYNC = """
totem {
	version: 2
	cluster_name: drill
	transport: knet
	crypto_cipher: none
	crypto_hash: none
	token: 2000
}
quorum {
	provider: corosync_votequorum
}
logging {
	to_stderr: no
	to_syslog: yes
}
nodelist {
%s}
"""
MEMBER = "\tnode {\n\t\tring0_addr: %s\n\t\tname: %s\n\t\tnodeid: %d\n\t}\n"

CRM = """
property stonith-enabled=false no-quorum-policy=ignore
rsc_defaults resource-stickiness=200 migration-threshold=1000000
primitive mirror ocf:perseas:mirror params config=/etc/perseasd.conf unix=/run/perseas/socket \
op start timeout=120s op stop timeout=120s op monitor interval=5s timeout=60s \
op monitor interval=7s timeout=60s OCF_CHECK_LEVEL=10
clone mirrors mirror meta interleave=true
"""


def mirrors_of(fleet):
    """The list of mirrors: a daemon on each node."""
    return ",".join("%s:%d" % (node.address, PORT) for node in fleet.nodes)


def configure(fleet):
    """What an administrator would write to each node's disk."""
    members = "".join(MEMBER % (node.address, node.name, node.number) for node in fleet.nodes)
    hosts = "".join("%s %s\n" % (node.address, node.name) for node in fleet.nodes)
    for node in fleet.nodes:
        node.write("/etc/corosync/corosync.conf", COROSYNC % members)
        node.write("/etc/hosts", "127.0.0.1 localhost\n" + hosts)
        node.write("/etc/hostname", node.name + "\n")
        node.write("/etc/perseasd.conf",
                   "listen %s:%d\nplaintext anywhere\n" % (node.address, PORT))
        node.write("/etc/perseas/clusters", "fleet %s\n" % mirrors_of(fleet))


def make_fleet(folder):
    """Three nodes with a cluster of Pacemaker's, and a mirror on each that answers."""
    fleet = Fleet(folder, 3)
    try:
        configure(fleet)
        for node in fleet.nodes:
            node.boot()
        one = fleet.nodes[0]
        wait_for(lambda: "3 nodes configured" in summary(one) and len(online(one)) == 3, SECONDS,
                 "a cluster of three nodes")
        configure_cluster(one, CRM)
        wait_for(lambda: one.run("perseas", "ls", "@fleet", check=False).count(": perseasd ") == 3,
                 SECONDS, "three mirrors")
    except BaseException:
        fleet.close()
        raise
    return fleet


def configure_cluster(node, text):
    """Lines of crmsh's, all in one change."""
    node.write("/root/crm", text)
    node.run("crm", "configure", "load", "update", "/root/crm")


def summary(node):
    return node.run("crm_mon", "-1", "-r", "-n", check=False)


def online(node):
    return re.findall(r"Node (node\d): online", summary(node))
