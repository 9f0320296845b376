#!/usr/bin/env python3
"""Runs a command in a virtual machine that has RDMA devices (soft-RoCE), under QEMU's emulation.

    rig.py run [--nodes N] [--memory 2G] [--cpus 2] [--steady] [--timeout S] -- COMMAND...

The command runs as root in the folder it is called in, sees the host's files read-only, and its
output and status come back. --nodes makes N nodes 10.5.0.1 … 10.5.0.N (nodes.sh). If the guest's
kernel panics the run is void, and the command runs again in a new machine, at most five times.
"""
import argparse
import sys

from qemu import ATTEMPTS, Failure, Follower, Guest, Options, Problem, job_of, panics


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="do", required=True)
    run = commands.add_parser("run", help="runs a command in one machine")
    run.add_argument("--nodes", type=int, default=0, help="how many nodes it has; none without")
    run.add_argument("--memory", default="2G", help="of the machine, 2G without")
    run.add_argument("--cpus", type=int, default=2, help="of the machine, 2 without")
    run.add_argument("--steady", action="store_true", help="one processor, whose clock counts "
                     "instructions: what is measured does not depend on the host's other work")
    run.add_argument("--provider", choices=("rxe", "siw"), default="rxe", help="rxe without")
    run.add_argument("--timeout", type=float, default=300, help="in seconds, 300 without")
    run.add_argument("--output", help="a folder for output, that stays; the guest can write there")
    run.add_argument("--see", action="append", default=[], metavar="FOLDER",
                     help="a folder of the host below /tmp, /run or /dev/shm that the guest is to "
                     "see; it sees the tree, the current folder and $PERSEAS_BUILD anyway")
    run.add_argument("command", nargs="+")
    return parser.parse_args()


def run(args, options):
    """The command's status; 125 if the machine failed."""
    try:
        with Guest(job_of(args.command), options) as guest:
            status = guest.wait(args.timeout, Follower(guest, sys.stdout.buffer))
            if status:
                guest.say_console()
            return status
    except (Failure, Problem) as problem:
        print("rig.py: %s" % problem, file=sys.stderr)
        return 125


def main():
    args = parse()
    options = Options(args.cpus, args.memory, "up %d" % args.nodes if args.nodes else "",
                      args.provider, args.see, args.output, steady=args.steady)
    for attempt in range(1, ATTEMPTS + 1):
        panics.clear()
        status = run(args, options)
        if status != 125 or not panics:
            return status
        print("rig.py: attempt %d is void, since the guest's kernel panicked: %s" % (
            attempt, panics[0]), file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
