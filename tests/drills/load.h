/*
 * load.h - opens many control connections to one daemon at a time. Most are idle, some are busy,
 * and some of the busy ones are hostile.
 */
#ifndef PERSEAS_DRILLS_LOAD_H
#define PERSEAS_DRILLS_LOAD_H

/*
 * teller load HOST PORT IDLE BUSY SLOW: runs over TCP until standard input ends. Half of the busy
 * connections ask for lists five times a second each; each of the others does one of these five
 * times a second:
 *
 *   slow       sends a request byte by byte that never ends
 *   huge       sends a megabyte that is no request, or announces more than the limit
 *   torn       closes in the middle of a request
 *   version    speaks another version
 *   stranger   claims a store named "prey", with takeover
 *
 * Connections that are closed reconnect. Prints "all" when all have connected for the first time;
 * "each" when each hostile kind has been answered since, the slow one SLOW times, and the good ones
 * have had more than BUSY replies; and at the end a line of NAME=COUNT. Returns the exit status.
 */
int load_run(int argc, char **argv);

#endif
