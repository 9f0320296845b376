/*
 * version.h - which versions of the control messages the two ends of a connection speak, and which
 * version each message belongs to. Both sides call it: the owner's and the command's connections
 * (client/host/hello.c, client/demand/reach.c) and the daemon's (server/loop/control_loop.c). It
 * does no I/O, and decides nothing about stores.
 *
 * The version of a struct ps_control_hello is either one version, or two: the highest in its
 * low 16 bits, and the lowest above them. The owner names all that it speaks. The mirror answers
 * with the highest that both speak; or, where there is none, with all of its own, and hangs up.
 */
#ifndef PERSEAS_PROTO_VERSION_H
#define PERSEAS_PROTO_VERSION_H

#include <protobuf-c/protobuf-c.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The variable by which a process speaks no version above this one. */
#define PS_PROTOCOL_VARIABLE "PERSEAS_PROTOCOL"

/* This process speaks none above this one from now on: PS_PROTOCOL_LEAST to PS_PROTOCOL_VERSION.
 * Before its first connection. */
void ps_version_limit(unsigned most);

/* The same by the variable's text; NULL: it is not set, and there is no limit. False: it is no such
 * version, and nothing has changed. */
bool ps_version_limit_by(const char *text);

/* All that this process speaks, for a hello. */
uint32_t ps_version_greeting(void);

/* The highest version that this process and the sender of that hello both speak; 0: there is none.
 * Any bytes are allowed. */
unsigned ps_version_common(uint32_t theirs);

/* What a mirror answers to that hello. */
uint32_t ps_version_answer(uint32_t theirs);

/* Returns the version that is spoken after this answer to our hello, which named `sent`; 0: none.
 * Any bytes are allowed. */
unsigned ps_version_agreed(uint32_t sent, uint32_t answer);

enum { PS_VERSION_TEXT = 40 };
/* "version 8", or "versions 8 to 9", for sentences. */
const char *ps_version_text(char text[PS_VERSION_TEXT], uint32_t greeting);

/* Returns the highest level of a roster that a peer of this version reads. */
uint32_t ps_version_level(unsigned version);

/* The lowest version that knows the whole message: every field of it that is set, and of the
 * messages in it. A peer that speaks a lower one must not be sent it. */
unsigned ps_version_of(const ProtobufCMessage *message);

#endif
