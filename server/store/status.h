/*
 * status.h - short names for enumerators of control.proto.
 */
#ifndef PERSEAS_SERVER_STATUS_H
#define PERSEAS_SERVER_STATUS_H

#include "control.pb-c.h"

#define STATUS(name) PERSEAS__STATUS__STATUS_##name
#define STATE(name) PERSEAS__STATE__STATE_##name

#endif
