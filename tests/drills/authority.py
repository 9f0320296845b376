"""A small CA for drills, made when the first drill needs it."""
import os
import ssl

import pytest

import drill  # noqa: F401  it knows where the benchmarks' modules are
import wire
from certificates import Authority


def dial(address, environment=os.environ):
    """Returns a TLS connection to host:port, with the certificate that the environment names."""
    context = ssl.create_default_context(cafile=environment["PERSEAS_TLS_CA"])
    context.load_cert_chain(environment["PERSEAS_TLS_CERT"], environment["PERSEAS_TLS_KEY"])
    return context.wrap_socket(wire.connect(address), server_hostname=address.rpartition(":")[0])


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    """A CA with certificates for mirrors at the loopback or at PERSEAS_HOSTS ("mirror"), and for
    clients ("owner")."""
    authority = Authority(tmp_path_factory.mktemp("authority"))
    hosts = os.environ.get("PERSEAS_HOSTS", "127.0.0.1").split(",")
    authority.issue("mirror", ",".join(["DNS:localhost", *("IP:" + host for host in hosts)]))
    authority.issue("owner")
    return authority
