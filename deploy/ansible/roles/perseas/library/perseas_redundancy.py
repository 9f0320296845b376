"""perseas_redundancy: whether a mirror may be restarted, and whether its stores are whole again.

The role runs it on the mirror's host, before it restarts the daemon there (state: expendable) and
afterwards (state: whole). It asks by the command `perseas` alone, whose verdict on a store is that
of `perseas status`, and must never change a store, a mirror or a file.
"""
import json
import os
import subprocess
import time

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: perseas_redundancy
short_description: Waits until the loss of a Perseas mirror would hurt no store
description:
  - With I(state=expendable), waits until each store that this mirror has can commit and be opened
    without it, and returns what it saw.
  - With I(state=whole), waits until each of those stores stands as it did in I(before), with this
    mirror live for its owner.
options:
  address:
    description: The mirror, as HOST:PORT, by which this host reaches it.
    type: str
    required: true
  state:
    description: What to wait for.
    type: str
    choices: [expendable, whole]
    required: true
  before:
    description: What I(state=expendable) returned as C(stores).
    type: dict
    default: {}
  may_pause:
    description:
      - Stores that may wait for as long as the daemon is being restarted; C(*) is all of them.
      - Their images stay in memory meanwhile, so nothing is lost, but nothing is committed either.
    type: list
    elements: str
    default: []
  wait:
    description: Seconds to wait at most.
    type: int
    default: 600
author: The Perseas authors
"""

EXAMPLES = r"""
- name: Hold back while a store would miss this mirror
  perseas_redundancy:
    address: 192.0.2.1:7170
    state: expendable
  register: before
"""

RETURN = r"""
stores:
  description: Of each store of this mirror, by its name, what would hurt it and who owns it.
  returned: always
  type: dict
waited_for:
  description: The sentences that it waited for, in their order.
  returned: always
  type: list
  elements: str
"""

# Between two looks, in seconds. A look takes a round trip to each mirror.
PAUSE = 0.5


class Unknown(Exception):
    """The mirrors do not tell, and why."""


def ask(*words):
    """The JSON that `perseas` prints, and its exit status."""
    try:
        done = subprocess.run(["perseas", *words, "--json"], check=False, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=dict(os.environ, LC_ALL="C.UTF-8"))
    except FileNotFoundError as error:
        raise Unknown("the command perseas is not installed here: install the package perseas"
                      ) from error
    try:
        return json.loads(done.stdout), done.returncode
    except ValueError as error:
        raise Unknown("'perseas %s' said: %s" % (" ".join(words), done.stderr.strip())) from error


def stores_of(address):
    """The names of the stores that this mirror has images of."""
    mirror, = ask("ls", address)[0]["mirrors"]
    if not mirror["reachable"]:
        raise Unknown("it does not tell of its stores: %s" % mirror["error"])
    return [each["store"] for each in mirror["stores"]]


def look_at(store, address):
    """What matters of a store, as this mirror and those of its roster tell it."""
    started = time.monotonic()
    told = ask("status", store, address)[0]
    own = next((each for each in told.get("mirrors", []) if each["address"] == address), {})
    if not own.get("has_store") or not told.get("verdict") or not told.get("roster"):
        raise Unknown("store '%s': 'perseas status' has no verdict on it: see whether its image "
                      "here is damaged, or its making was never finished" % store)
    # A roster may have this mirror by another name.
    names = [each["address"] for each in told["roster"]["members"]
             if each["image_id"] == own["image_id"]]
    verdict, owner = told["verdict"], told["owner"]
    return {
        "started": started, "member": bool(names), "state": own["state"],
        "can_commit": verdict["can_commit"], "can_open": verdict["can_open"],
        "hurts": sorted(verdict["hurts"]), "hurt": bool({address, *names} & {*verdict["hurts"]}),
        "lag": own.get("lag") or 0, "live": own["live"], "owned": owner is not None,
        "doubt": bool(owner and owner["doubt_ms"]),
        "silent": owner["silent_ms"] / 1000 if owner else 0,
        "not_live": sorted(each["address"] for each in owner["mirrors"]
                           if each["state"] != "live") if owner else []}


def harm(store, seen, may_pause):
    """What a restart of this mirror would do to the store; None if nothing."""
    if not seen["member"]:
        return None
    for word in ("can_commit", "can_open"):
        if seen[word] is False:
            return "store '%s' %s now: mend that first" % (store, word.replace("can_", "cannot "))
    if seen["can_commit"] is None:
        return ("store '%s': it is not known whether it can commit, since mirrors of it do not "
                "answer" % store)
    if seen["doubt"]:
        return "store '%s' has a commit in doubt: too few of its mirrors are live" % store
    if seen["hurt"] and store not in may_pause and "*" not in may_pause:
        return ("store '%s' could not commit or be opened without this mirror (the next loss that "
                "hurts: %s)" % (store, ", ".join(seen["hurts"])))
    return None


def lack(store, seen, before, since):
    """What the store has not got again; None if nothing. since: when this mirror was first seen to
    be live for the store's owner; what an owner said before that is of no use."""
    if not before["member"]:
        return None
    if seen["state"] != before["state"]:
        return "store '%s': its image here is '%s'" % (store, seen["state"])
    if seen["owned"] and before["live"] and not seen["live"]:
        return "store '%s': its owner has not come back to this mirror" % store
    if seen["live"] and seen["started"] - seen["silent"] < since:
        return "store '%s': its owner has not yet told how this mirror is" % store
    missing = set(seen["not_live"]) - set(before["not_live"])
    if missing:
        return "store '%s': not live for its owner: %s" % (store, ", ".join(sorted(missing)))
    if not seen["owned"] and seen["lag"] > before["lag"]:
        return "store '%s': this mirror is behind, and no owner brings it up to date" % store
    if seen["doubt"] or not (seen["can_commit"] and seen["can_open"]):
        return "store '%s' cannot commit or be opened" % store
    worse = set(seen["hurts"]) - set(before["hurts"])
    if worse:
        return "store '%s': the loss of %s would hurt it" % (store, " or ".join(sorted(worse)))
    return None


class Watch:
    """The looks at all stores of a mirror, until they say what is wanted."""

    def __init__(self, parameters):
        self.address, self.before = parameters["address"], parameters["before"]
        self.may_pause, self.state = parameters["may_pause"], parameters["state"]
        self.stores, self.since = {}, {}

    def trouble(self):
        """The first thing that stands in the way; None: nothing does."""
        try:
            if self.state == "expendable":
                return self.first_harm()
            return self.first_lack()
        except Unknown as error:
            return str(error)

    def first_harm(self):
        self.stores = {name: look_at(name, self.address) for name in stores_of(self.address)}
        return next((why for why in (harm(name, seen, self.may_pause)
                                     for name, seen in self.stores.items()) if why), None)

    def first_lack(self):
        there = stores_of(self.address)
        for name, before in self.before.items():
            if name not in there:
                if before["member"]:
                    return "store '%s': this mirror has no image of it any more" % name
                continue
            seen = self.stores[name] = look_at(name, self.address)
            if not seen["live"]:
                self.since.pop(name, None)
            else:
                self.since.setdefault(name, time.monotonic())
            why = lack(name, seen, before, self.since.get(name))
            if why:
                return why
        return None


ADVICE = {
    "expendable": "It was not restarted. Bring the store's other mirrors back, or raise "
                  "perseas_wait if one of them is being copied. A store whose W mirrors are all "
                  "that it has always waits while one of them is restarted: if it may, name it in "
                  "perseas_may_pause.",
    "whole": "It was restarted, and no other mirror will be. Look at 'perseas status' and at "
             "'journalctl -u perseasd' there, and run the play again.",
}


def main():
    module = AnsibleModule(
        argument_spec={
            "address": {"type": "str", "required": True},
            "state": {"type": "str", "required": True, "choices": ["expendable", "whole"]},
            "before": {"type": "dict", "default": {}},
            "may_pause": {"type": "list", "elements": "str", "default": []},
            "wait": {"type": "int", "default": 600}},
        supports_check_mode=True)
    watch, waited_for = Watch(module.params), []
    until = time.monotonic() + module.params["wait"]
    while True:
        why = watch.trouble()
        if not why:
            module.exit_json(changed=False, stores=watch.stores, waited_for=waited_for)
        if [why] != waited_for[-1:]:
            waited_for.append(why)
        if time.monotonic() >= until:
            module.fail_json(msg="mirror %s: %s, after %d s, too. %s" % (
                module.params["address"], why, module.params["wait"],
                ADVICE[module.params["state"]]), stores=watch.stores, waited_for=waited_for)
        time.sleep(PAUSE)


if __name__ == "__main__":
    main()
