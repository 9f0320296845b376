"""A fleet for drills: a hundred stores on ten daemons, each on three of them."""
from binding import CREATE, Store
from drill import SECONDS, mirror_list, status_of, wait_for

DAEMONS, STORES, COPIES = 10, 100, 3
LOG = 64 << 10
# Timeouts that even a busy machine meets.
PATIENT = dict(log_size=LOG, connect_timeout_ms=1000 * SECONDS, mirror_timeout_ms=1000 * SECONDS)


def make_stores(daemons):
    """Creates the stores, of one page each, without owners. Returns {name: its daemons}."""
    homes = {}
    for k in range(STORES):
        home = homes["store%02d" % k] = [daemons[(k + i * (1 + k // 50)) % DAEMONS]
                                         for i in range(COPIES)]
        with Store("store%02d" % k, mirror_list(home), flags=CREATE, **PATIENT) as store:
            store.map("data", 4096)
            store.publish()
    for name, home in homes.items():
        wait_for(lambda n=name, h=home: not status_of(n, h)["live"], SECONDS, "no owner of " + name)
    return homes
