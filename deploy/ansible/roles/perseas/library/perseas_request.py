"""perseas_request: a key that never leaves this host, and whether its certificate must be issued.

The role runs it with `perseas_tls: ca`. Where the key is missing it makes one, by the command
openssl, and where the certificate is missing or does not do any more it returns a request for a new
one. It must never show a key, nor replace one that is there.
"""
import ipaddress
import os
import subprocess

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = r"""
module: perseas_request
short_description: Makes a key, and a request for a certificate where one is needed
options:
  key:
    description: The key's file, made with mode 0600 if there is none.
    type: path
    required: true
  certificate:
    description: The certificate's file.
    type: path
    required: true
  ca:
    description: The CA's certificate, as a text.
    type: str
    required: true
  subject:
    description: The common name to ask for.
    type: str
    required: true
  names:
    description: The alternative names that the certificate must have, as DNS:NAME or IP:ADDRESS.
    type: list
    elements: str
    required: true
  days:
    description: A certificate that expires within so many days must be issued anew.
    type: int
    default: 30
author: The Perseas authors
"""

EXAMPLES = r"""
- name: Ask for a certificate
  perseas_request:
    key: /etc/perseas/tls/mirror.key
    certificate: /etc/perseas/tls/mirror.pem
    ca: "{{ ca }}"
    subject: node1
    names: ["DNS:node1", "IP:192.0.2.1"]
  register: request
"""

RETURN = r"""
reason:
  description: Why a certificate must be issued; empty if the present one does.
  returned: always
  type: str
request:
  description: The request, as PEM; empty if none is needed, or in check mode without a key.
  returned: always
  type: str
"""


def openssl(module, *words, data="", check=True):
    done = subprocess.run(["openssl", *words], input=data, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    if check and done.returncode:
        module.fail_json(msg="openssl %s: %s" % (words[0], done.stderr.strip()))
    return done


def alternative_names(module, path):
    """As they are asked for."""
    text = openssl(module, "x509", "-in", path, "-noout", "-ext", "subjectAltName").stdout
    words = [word.strip() for word in text.partition("\n")[2].split(",")]
    return {word.replace("IP Address:", "IP:") for word in words if word}


def plain(name):
    """openssl writes addresses of IPv6 in its own way."""
    kind, _, value = name.partition(":")
    if kind != "IP" or ":" not in value:
        return name
    parts = ipaddress.ip_address(value).exploded.split(":")
    return "IP:" + ":".join("%X" % int(part, 16) for part in parts)


def fault(module):
    """Why the present certificate does not do; '' if it does."""
    want, path = module.params, module.params["certificate"]
    if not os.path.exists(path):
        return "there is none"
    key = openssl(module, "pkey", "-in", want["key"], "-pubout").stdout
    if openssl(module, "x509", "-in", path, "-noout", "-pubkey", check=False).stdout != key:
        return "it is of another key"
    if openssl(module, "x509", "-in", path, "-noout", "-checkend", str(want["days"] * 86400),
               check=False).returncode:
        return "it expires within %d days" % want["days"]
    if alternative_names(module, path) != {plain(name) for name in want["names"]}:
        return "it is for other names"
    if openssl(module, "verify", "-no-CApath", "-no-CAstore", "-CAfile", "/dev/stdin", path,
               data=want["ca"], check=False).returncode:
        return "it is of another CA"
    return ""


def make_key(module):
    """In a file beside it first: half of a key is none."""
    path = module.params["key"]
    part = path + ".part"
    openssl(module, "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out",
            part)
    os.chmod(part, 0o600)
    os.rename(part, path)


def main():
    module = AnsibleModule(
        argument_spec={
            "key": {"type": "path", "required": True, "no_log": False},
            "certificate": {"type": "path", "required": True},
            "ca": {"type": "str", "required": True},
            "subject": {"type": "str", "required": True},
            "names": {"type": "list", "elements": "str", "required": True},
            "days": {"type": "int", "default": 30}},
        supports_check_mode=True)
    want = module.params
    os.umask(0o077)
    new = not os.path.exists(want["key"])
    if new and module.check_mode:
        module.exit_json(changed=True, reason="there is no key", request="")
    if new:
        make_key(module)
    reason = fault(module)
    request = openssl(module, "req", "-new", "-key", want["key"], "-subj", "/CN=" +
                      want["subject"]).stdout if reason else ""
    module.exit_json(changed=new, reason=reason, request=request)


if __name__ == "__main__":
    main()
