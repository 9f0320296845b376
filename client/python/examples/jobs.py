"""A queue of jobs that survives its process: what was added is done, and a job whose worker died
before it said so is given out again. Several threads work on it.

    jobs.py LIST WORKERS    adds each line of its input as a job; workers do them ("done ID LINE").
                            At the end of the input it waits until all are done.
"""
from __future__ import annotations

import sys
import threading

import perseas

QUEUED, TAKEN = 0, 1


class Queue:
    """Jobs in a table, by their numbers: a byte with the state, and the text. The object of the
    root "ends" has the numbers of the next job to be given out and of the next to be added."""

    def __init__(self, store: perseas.Store) -> None:
        self.store = store
        self.heap = store.heap("jobs", create=True)
        self.jobs = self.heap.table("jobs")
        found = self.heap.root("ends")
        self.ends = found or store.transact(self._make_ends)
        store.transact(self._give_back, serial=True)

    def _make_ends(self, tx: perseas.Transaction) -> perseas.Object:
        made = self.heap.alloc(tx, 16)
        self.heap.set_root(tx, "ends", made)
        return made

    def _give_back(self, tx: perseas.Transaction) -> None:
        """What was taken by a process that is gone is queued again, in its old place."""
        jobs = self.jobs.within(tx)
        taken = [key for key, value in jobs.snapshot().items() if value[0] == TAKEN]
        for key in taken:
            jobs[key] = bytes([QUEUED]) + jobs[key][1:]
        if taken:
            tx.pack(self.ends.view, 0, "<q", min(int.from_bytes(key, "little") for key in taken))

    def _end(self, index: int) -> int:
        return int(self.ends.view[:16].cast("q")[index])

    def add(self, text: str) -> int:
        """Its number; mirrors hold it when this returns."""
        def work(tx: perseas.Transaction) -> int:
            number = self._end(1)
            self.jobs.within(tx)[number.to_bytes(8, "little")] = bytes([QUEUED]) + text.encode()
            tx.pack(self.ends.view, 8, "<q", number + 1)
            return number
        return self.store.transact(work, serial=True)

    def take(self) -> tuple[int, str] | None:
        """The next job, which is this process's now; None: there is none."""
        def work(tx: perseas.Transaction) -> tuple[int, str] | None:
            jobs = self.jobs.within(tx)
            for number in range(self._end(0), self._end(1)):
                key = number.to_bytes(8, "little")
                job = jobs.get(key)
                if job and job[0] == QUEUED:
                    jobs[key] = bytes([TAKEN]) + job[1:]
                    tx.pack(self.ends.view, 0, "<q", number + 1)
                    return number, job[1:].decode()
            return None
        return self.store.transact(work, serial=True)

    def finish(self, number: int) -> None:
        """It is done, and is not given out again whatever happens."""
        def work(tx: perseas.Transaction) -> None:
            del self.jobs.within(tx)[number.to_bytes(8, "little")]
        self.store.transact(work, serial=True)


def say(line: str) -> None:
    """In one write: threads do not mix their lines, and who is killed has said all of one."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def work(queue: Queue, more: threading.Semaphore, is_over: threading.Event) -> None:
    while True:
        more.acquire()
        job = queue.take()
        if job is None and is_over.is_set():
            return
        if job:
            number, text = job
            say("done %d %s" % (number, text))  # this is the work
            queue.finish(number)


def main() -> None:
    workers = int(sys.argv[2])
    with perseas.open("jobs", sys.argv[1], create=True) as store:
        queue = Queue(store)
        left = len(queue.jobs)
        say("open, %d jobs are left" % left)
        more, is_over = threading.Semaphore(left), threading.Event()
        threads = [threading.Thread(target=work, args=(queue, more, is_over))
                   for _ in range(workers)]
        for thread in threads:
            thread.start()
        try:
            for line in sys.stdin:
                say("added %d" % queue.add(line.strip()))
                more.release()
        finally:
            is_over.set()
            more.release(workers)
            for thread in threads:
                thread.join()


if __name__ == "__main__":
    main()
