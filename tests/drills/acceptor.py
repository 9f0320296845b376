"""A server of a test's own, on loopback: what stands in for a daemon, or before one. Subclasses say
what is done with a connection."""
import contextlib
import socket
import threading


class Acceptor:
    """Takes connections as long as the `with` block lasts. A thread for each of them runs
    serve(socket), which subclasses have."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        # Closing alone does not wake a thread that waits in accept().
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                self.accepted(self.listener.accept()[0])

    def accepted(self, peer):
        """Called for one connection after the other, in the order in which they come."""
        threading.Thread(target=self.serve, args=[peer], daemon=True).start()
