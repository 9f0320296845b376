"""Transfers between the accounts of a bank, which has the layout of doc/examples/bank.c: either
program goes on with what the other one left.

    bank.py LIST COUNT      so many transfers; then says how many there were in all
"""
from __future__ import annotations

import random
import sys
from typing import Any

import numpy

import perseas

ACCOUNTS, FIRST_BALANCE = 1000, 100
ACCOUNT = numpy.dtype([("balance", "<i8"), ("holder", "S24")])
SIZE = ACCOUNTS * ACCOUNT.itemsize + 8


class Bank:
    """The bank in an open store."""

    def __init__(self, store: perseas.Store) -> None:
        self.store = store
        segment = store.map("accounts", SIZE)
        if not segment.published:               # first contents; from then on transactions
            segment.array(ACCOUNT, ACCOUNTS, writable=True)["balance"] = FIRST_BALANCE
            store.publish()
        self.accounts = segment.array(ACCOUNT, ACCOUNTS)
        self.transfers = segment.array("<u8", 1, offset=ACCOUNTS * ACCOUNT.itemsize)

    def transfer(self, giver: int, taker: int, amount: int) -> None:
        """Raises ValueError when the giver has not so much: then nothing is changed."""
        with self.store.transaction() as tx:
            tx.writable(self.accounts[giver:giver + 1])["balance"] -= amount
            tx.writable(self.accounts[taker:taker + 1])["balance"] += amount
            tx.writable(self.transfers)[0] += 1
            if self.accounts[giver]["balance"] < 0:
                raise ValueError("account %d has not so much" % giver)

    def total(self) -> int:
        return int(self.accounts["balance"].sum())


def settle(store: perseas.Store) -> None:
    """A commit is in doubt: it is done here, and cannot be taken back. Nobody is told that it is
    done before W mirrors hold it."""
    while True:
        try:
            return store.flush()
        except perseas.InDoubtError as error:
            print("in doubt:", error.sentence, flush=True)


def work(bank: Bank, count: int) -> None:
    for _ in range(count):
        giver, taker = random.sample(range(ACCOUNTS), 2)
        try:
            bank.transfer(giver, taker, 1)
        except perseas.InDoubtError:
            settle(bank.store)
        except (perseas.BlockedError, ValueError):
            pass                                # nothing was done


def main(argv: list[str]) -> Any:
    if len(argv) != 3:
        return __doc__
    with perseas.open("bank", argv[1], create=True, commit_timeout_ms=1000) as store:
        bank = Bank(store)
        print("open, epoch %d, %d transfers so far" % (store.stat().epoch, bank.transfers[0]),
              flush=True)
        work(bank, int(argv[2]))
        print("%d transfers, %d in all accounts" % (bank.transfers[0], bank.total()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
