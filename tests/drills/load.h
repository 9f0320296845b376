/*
 * load.h - many control connections to one daemon at the same time, most of them idle, some of them
 * busy, and of these some hostile.
 */
#ifndef PERSEAS_DRILLS_LOAD_H
#define PERSEAS_DRILLS_LOAD_H

/*
 * teller load HOST PORT IDLE BUSY SLOW: over TCP, until standard input ends. Half of the busy ones
 * ask for lists five times a second each; the others
 *
 *   slow       send a request byte by byte, which never ends
 *   huge       send a megabyte that is no request, or announce more than there may be
 *   torn       end in the middle of a request
 *   version    speak another version
 *   stranger   claim a store named "prey", with takeover
 *
 * each five times a second too. Those that are closed come again. It writes "all" when all have
 * connected for the first time, "each" when after that each of the hostile kinds has been answered,
 * the slow one SLOW times, and the others have had more than BUSY replies, and a line of NAME=COUNT
 * at the end. Returns the exit status.
 */
int load_run(int argc, char **argv);

#endif
