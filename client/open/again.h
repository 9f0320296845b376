/*
 * again.h - what the steps of an attempt to open a store return (attempt.h). They run before the
 * handle is open: one thread, no keeper. Each returns 0, a PERSEAS_E… code with the handle's
 * message set, or PS_AGAIN: a session broke, or another claimer was faster, and the attempt starts
 * again with a higher epoch and no candidates (I6).
 */
#ifndef PERSEAS_CLIENT_AGAIN_H
#define PERSEAS_CLIENT_AGAIN_H

enum { PS_AGAIN = 1 };

#endif
