/*
 * version.h - negotiates the version of control messages on a connection, and says which version
 * each message needs. Connections of owners and commands (client/host/control_greeting.c,
 * client/demand/fetch_connection.c) and of the daemon (server/loop/control_loop.c) call it. It does
 * no I/O and decides nothing about stores.
 *
 * The version in a struct ps_control_hello is a single version, or a range with the highest one in
 * its low 16 bits and the lowest one above them. The owner sends the range that it speaks. The
 * mirror answers with the highest version that both speak. If they have none in common, it answers
 * with its own range and closes the connection.
 */
#ifndef PERSEAS_PROTO_VERSION_H
#define PERSEAS_PROTO_VERSION_H

#include <protobuf-c/protobuf-c.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Environment variable: the highest version that a process speaks. */
#define PS_PROTOCOL_VARIABLE "PERSEAS_PROTOCOL"

/* Sets the highest version that this process speaks, from PS_PROTOCOL_LEAST to PS_PROTOCOL_VERSION.
 * Call before the first connection. */
void ps_version_limit(unsigned most);

/* Sets the limit from the variable's text; NULL stands for no limit. Returns false and changes
 * nothing if the text is not a valid version. */
bool ps_version_limit_from_text(const char *text);

/* Returns the range of versions that this process speaks, for a hello. */
uint32_t ps_version_greeting(void);

/* Returns the highest version that both this process and the sender of the hello `theirs` speak, or
 * 0. Accepts any value. */
unsigned ps_version_common(uint32_t theirs);

/* Returns a mirror's answer to the hello `theirs`. */
uint32_t ps_version_answer(uint32_t theirs);

/* Returns the version that a connection speaks after our hello `sent` and the peer's answer, or 0
 * if they have no version in common. Accepts any value. */
unsigned ps_version_agreed(uint32_t sent, uint32_t answer);

enum { PS_VERSION_TEXT = 40 };
/* Formats "version 8" or "versions 8 to 9", for sentences. Returns text. */
const char *ps_version_text(char text[PS_VERSION_TEXT], uint32_t greeting);

/* Returns the highest level of a roster that a peer of this version reads. */
uint32_t ps_version_highest_level(unsigned version);

/* Returns the lowest version that knows every field that is set in the message and in the messages
 * in it. A peer that speaks a lower version must not be sent the message. */
unsigned ps_version_needed_by(const ProtobufCMessage *message);

#endif
