"""A small certificate authority for drills and benchmarks, made by the openssl command."""
import pathlib
import subprocess
import time

CONFIG = """
[ca]
default_ca = small
[small]
database = %(folder)s/index
serial = %(folder)s/serial
crlnumber = %(folder)s/crlnumber
new_certs_dir = %(folder)s
certificate = %(folder)s/ca.pem
private_key = %(folder)s/ca.key
default_md = sha256
default_crl_days = 1
policy = any
unique_subject = no
[any]
commonName = supplied
"""


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)


def date(seconds):
    """Returns the time that is `seconds` from now, in openssl's format."""
    return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + seconds))


class Authority:
    """A CA in a folder. issue() writes NAME.pem and NAME.key there; `ca` is the CA's own
    certificate."""
    KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")

    def __init__(self, folder):
        self.folder, self.ca = pathlib.Path(folder), pathlib.Path(folder) / "ca.pem"
        self.folder.mkdir(exist_ok=True)
        openssl("req", "-x509", *self.KEY, "-days", 1, "-subj", "/CN=" + self.folder.name,
                "-keyout", self.folder / "ca.key", "-out", self.ca)
        for name, text in (("index", ""), ("serial", "01\n"), ("crlnumber", "01\n"),
                           ("config", CONFIG % {"folder": self.folder})):
            (self.folder / name).write_text(text)

    def cert(self, name):
        return self.folder / (name + ".pem")

    def key(self, name):
        return self.folder / (name + ".key")

    def issue(self, name, names=None, days=1, use=None):
        """Issues a certificate for the alternative names `names`, in openssl's syntax; by default a
        DNS name."""
        extensions = self.folder / (name + ".ext")
        extensions.write_text("subjectAltName=%s\n" % (names or "DNS:" + name) +
                              ("extendedKeyUsage=%s\n" % use if use else ""))
        request = self.folder / (name + ".csr")
        openssl("req", *self.KEY, "-subj", "/CN=" + name, "-keyout", self.key(name), "-out",
                request)
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.folder / "ca.key",
                "-CAcreateserial", "-days", days, "-extfile", extensions, "-out", self.cert(name))

    def issue_valid(self, name, names, since, until):
        """Issues a certificate that is valid from `since` to `until`, in seconds from now."""
        self.issue(name, names)
        openssl("ca", "-batch", "-notext", "-config", self.folder / "config", "-in",
                self.folder / (name + ".csr"), "-extfile", self.folder / (name + ".ext"),
                "-startdate", date(since), "-enddate", date(until), "-out", self.cert(name))

    def revoke(self, *names, seconds=86400):
        """Revokes certificates. Returns a revocation list of all revoked so far, valid for
        `seconds`."""
        crl = self.folder / "crl.pem"
        for name in names:
            openssl("ca", "-config", self.folder / "config", "-revoke", self.cert(name))
        openssl("ca", "-config", self.folder / "config", "-gencrl", "-crlsec", seconds,
                "-out", crl)
        return crl

    def options(self, name):
        """Returns the options that perseasd and perseas take."""
        return ("--tls-cert", str(self.cert(name)), "--tls-key", str(self.key(name)),
                "--tls-ca", str(self.ca))

    def environment(self, name):
        return {"PERSEAS_TLS_CERT": str(self.cert(name)), "PERSEAS_TLS_KEY": str(self.key(name)),
                "PERSEAS_TLS_CA": str(self.ca)}
