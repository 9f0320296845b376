"""perseas_pending: whether a unit of systemd runs with files or a program that are there no more.

The role runs it to know what it must restart: not from what this run of the role changed, but from
what the host looks like, so that a run that was interrupted is gone on with by the next one. It
must never change anything.
"""
import os
import subprocess

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: perseas_pending
short_description: Says whether a unit must be restarted to use its files
description:
  - A unit that does not run needs no restart, whatever its files are.
options:
  unit:
    description: A service or a socket.
    type: str
    required: true
  files:
    description: What it reads when it starts. Files that are not there do not count.
    type: list
    elements: str
    default: []
  reloaded:
    description: A file that is touched whenever the unit was told to read its files again, if it
      can do that without a start. What is older than this file has been read, too.
    type: str
    default: ""
  program:
    description: Whether a program that was replaced counts, too.
    type: bool
    default: true
author: The Perseas authors
"""

EXAMPLES = r"""
- name: Ask what the daemon has not read
  perseas_pending:
    unit: perseasd.service
    files: [/etc/perseasd.conf]
  register: pending
"""

RETURN = r"""
active:
  description: Whether the unit runs.
  returned: always
  type: bool
reasons:
  description: What it would read or run anew, as sentences; empty if it need not be restarted.
  returned: always
  type: list
  elements: str
"""


def properties(unit):
    """Of systemd; times are seconds since 1970, behind an @."""
    told = subprocess.run(["systemctl", "show", unit, "--timestamp=unix"], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return dict(line.split("=", 1) for line in told.splitlines() if "=" in line)


def seconds(text):
    return int(text.lstrip("@")) if text.startswith("@") else 0


def changed(path):
    """When a file was changed last, in whole seconds; 0 if it is not there."""
    try:
        return int(os.stat(path).st_mtime)
    except OSError:
        return 0


def is_replaced(pid):
    """Was the file of this process removed, or another one put in its place?"""
    try:
        return os.readlink("/proc/%s/exe" % pid).endswith(" (deleted)")
    except OSError:
        return False


def main():
    module = AnsibleModule(
        argument_spec={"unit": {"type": "str", "required": True},
                       "files": {"type": "list", "elements": "str", "default": []},
                       "reloaded": {"type": "str", "default": ""},
                       "program": {"type": "bool", "default": True}},
        supports_check_mode=True)
    try:
        seen = properties(module.params["unit"])
    except FileNotFoundError:
        seen = {}
    active = seen.get("ActiveState") in ("active", "reloading", "activating")
    # A service has both, a socket the second one alone.
    started = seconds(seen.get("ExecMainStartTimestamp") or seen.get("ActiveEnterTimestamp", ""))
    read = max(started, changed(module.params["reloaded"]))
    reasons = []
    if active:
        # systemd tells whole seconds. Within one of them the role knows what it changed itself.
        reasons += ["%s is newer than %s" % (path, module.params["unit"])
                    for path in module.params["files"] if changed(path) > read]
        if module.params["program"] and is_replaced(seen.get("MainPID", "0")):
            reasons.append("the program of %s was replaced" % module.params["unit"])
    module.exit_json(changed=False, active=active, reasons=reasons)


if __name__ == "__main__":
    main()
