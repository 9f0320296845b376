"""perseas_match: whether a certificate, its key and a CA belong together.

The role runs it on the control node, with `perseas_tls: copy`, before it takes the files to a host:
a daemon that has read a set that does not fit goes on with the one before, and the next start of it
fails. It must never write a file that outlives it, nor show a key.
"""
import os
import subprocess
import tempfile

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: perseas_match
short_description: Says whether a certificate, a key and a CA belong together
options:
  certificate:
    description: The certificate, and then those between it and the CA, as PEM.
    type: str
    required: true
  key:
    description: Its key, as PEM, without a passphrase.
    type: str
    required: true
  ca:
    description: The certificates of the CAs that are trusted, as PEM.
    type: str
    required: true
author: The Perseas authors
"""

EXAMPLES = r"""
- name: Ask whether the files fit together
  perseas_match:
    certificate: "{{ lookup('file', 'node1.pem') }}"
    key: "{{ lookup('file', 'node1.key') }}"
    ca: "{{ lookup('file', 'ca.pem') }}"
  register: matched
  delegate_to: localhost
"""

RETURN = r"""
fault:
  description: What is wrong with them, as a sentence without an end; empty if nothing is.
  returned: always
  type: str
"""


def openssl(*words):
    """Its exit status, what it printed, and why it failed."""
    return subprocess.run(["openssl", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)


def reason(done):
    """The one line of what openssl says that a person can use."""
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("error ")]
    return lines[0].partition(": ")[2] if lines else "openssl refuses it"


def fault(folder):
    """What is wrong with the files of that folder; '' if nothing is."""
    path = {name: os.path.join(folder, name) for name in ("certificate", "key", "ca")}
    of_certificate = openssl("x509", "-in", path["certificate"], "-noout", "-pubkey")
    if of_certificate.returncode:
        return "perseas_tls_cert is no certificate in PEM"
    # An empty passphrase, so that nobody is asked for one.
    of_key = openssl("pkey", "-in", path["key"], "-passin", "pass:", "-pubout")
    if of_key.returncode:
        return "perseas_tls_key is no key in PEM without a passphrase"
    if of_key.stdout != of_certificate.stdout:
        return "perseas_tls_key is the key of another certificate than perseas_tls_cert"
    if openssl("x509", "-in", path["ca"], "-noout").returncode:
        return "perseas_tls_ca is no certificate in PEM"
    # A mirror serves owners, and asks other mirrors whether it may be restarted.
    for purpose, usage in (("sslserver", "serverAuth"), ("sslclient", "clientAuth")):
        done = openssl("verify", "-no-CApath", "-no-CAstore", "-CAfile", path["ca"], "-untrusted",
                       path["certificate"], "-purpose", purpose, path["certificate"])
        if done.returncode:
            return "perseas_tls_cert is not valid for %s under perseas_tls_ca: %s" % (
                usage, reason(done))
    return ""


def main():
    module = AnsibleModule(
        argument_spec={"certificate": {"type": "str", "required": True},
                       "key": {"type": "str", "required": True, "no_log": True},
                       "ca": {"type": "str", "required": True}},
        supports_check_mode=True)
    os.umask(0o077)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in module.params.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text + "\n")
        try:
            found = fault(folder)
        except FileNotFoundError:
            module.fail_json(msg="the command openssl is not there: install the package openssl")
    module.exit_json(changed=False, fault=found)


if __name__ == "__main__":
    main()
