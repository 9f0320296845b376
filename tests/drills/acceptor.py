"""A server that a test runs on the loopback, in place of a daemon or in front of one. Subclasses
define what happens on a connection."""
import contextlib
import socket
import threading


class Acceptor:
    """Accepts connections while the `with` block lasts. Each runs serve(socket), which subclasses
    define, in its own thread."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        # Closing the socket does not wake a thread that waits in accept().
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                self.accepted(self.listener.accept()[0])

    def accepted(self, peer):
        """Called for each connection, in the order of their arrival."""
        threading.Thread(target=self.serve, args=[peer], daemon=True).start()
