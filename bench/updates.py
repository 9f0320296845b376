"""A TLS client that sends nothing but key updates. Calls OpenSSL directly, because Python's ssl has
no function for key updates."""
import ctypes
import ctypes.util

PEM, WITHOUT_ANSWER = 1, 0              # SSL_FILETYPE_PEM, SSL_KEY_UPDATE_NOT_REQUESTED


def library():
    lib = ctypes.CDLL(ctypes.util.find_library("ssl"))
    for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
        getattr(lib, name).restype = ctypes.c_void_p
    for name, kinds in (("SSL_CTX_new", [ctypes.c_void_p]), ("SSL_CTX_free", [ctypes.c_void_p]),
                        ("SSL_CTX_use_certificate_chain_file", [ctypes.c_void_p, ctypes.c_char_p]),
                        ("SSL_CTX_use_PrivateKey_file",
                         [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]),
                        ("SSL_new", [ctypes.c_void_p]), ("SSL_free", [ctypes.c_void_p]),
                        ("SSL_set_fd", [ctypes.c_void_p, ctypes.c_int]),
                        ("SSL_connect", [ctypes.c_void_p]),
                        ("SSL_key_update", [ctypes.c_void_p, ctypes.c_int]),
                        ("SSL_do_handshake", [ctypes.c_void_p])):
        getattr(lib, name).argtypes = kinds
    return lib


def flood(peer, certificate, key, go_on):
    """Sends key updates over the blocking connection `peer` until it ends or go_on() is false.
    Returns how many."""
    lib, sent = library(), 0
    context = lib.SSL_CTX_new(lib.TLS_client_method())
    if lib.SSL_CTX_use_certificate_chain_file(context, certificate.encode()) != 1 or \
            lib.SSL_CTX_use_PrivateKey_file(context, key.encode(), PEM) != 1:
        raise RuntimeError("%s or %s cannot be used" % (certificate, key))
    stream = lib.SSL_new(context)
    lib.SSL_set_fd(stream, peer.fileno())
    if lib.SSL_connect(stream) != 1:
        raise RuntimeError("no handshake for key updates")
    while go_on() and lib.SSL_key_update(stream, WITHOUT_ANSWER) == 1 and \
            lib.SSL_do_handshake(stream) == 1:
        sent += 1
    lib.SSL_free(stream)
    lib.SSL_CTX_free(context)
    return sent
