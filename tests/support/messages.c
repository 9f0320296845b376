/*
 * messages.c - valid control messages for tests.
 */
#include "messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char message_bank[] = "bank", message_ledger[] = "ledger", message_accounts[] = "accounts";
char message_control_character[] = "a\tb";
char message_address[3][32] = { "127.0.0.1:7170", "[::1]:7170", "unix:///run/perseas" };

ProtobufCBinaryData message_id(int i)
{
	static uint8_t ids[NO_ID + 1][PS_ID_SIZE];

	if (i != NO_ID)
		ids[i][i % PS_ID_SIZE] = (uint8_t)(i + 1);
	return (ProtobufCBinaryData){ PS_ID_SIZE, ids[i] };
}

static void make_members(struct message_header *h)
{
	for (int i = 0; i < 17; i++) {
		perseas__member__init(&h->members[i]);
		h->members[i].address = message_address[i % 3];
		h->members[i].image_id = message_id(i);
		h->member_list[i] = &h->members[i];
	}
}

static void make_roster(struct message_header *h, Perseas__Roster *roster)
{
	perseas__roster__init(roster);
	roster->version = 1;
	roster->acks = 2;
	roster->n_members = 3;
	roster->members = h->member_list;
}

static void make_segments(struct message_header *h)
{
	for (int i = 0; i < 129; i++) {
		Perseas__Segment *segment = &h->segments[i];

		perseas__segment__init(segment);
		snprintf(h->names[i], sizeof h->names[i], "s%d", i);
		segment->id = (uint32_t)i;
		segment->name = h->names[i];
		segment->size = 1000;
		segment->address = ((uint64_t)1 << 40) + PS_PAGE * (uint64_t)i;
		segment->born = 3;
		h->segment_list[i] = segment;
	}
}

struct message_header *message_header_new(void)
{
	struct message_header *h = calloc(1, sizeof *h);

	if (!h)
		abort();
	make_members(h);
	make_segments(h);
	make_roster(h, &h->roster);
	make_roster(h, &h->next);
	perseas__header__init(&h->header);
	h->header.store = message_bank;
	h->header.creator = message_ledger;
	h->header.store_id = message_id(3);
	h->header.image_id = message_id(0);
	h->header.promised_epoch = 9;
	h->header.promised_owner = message_id(4);
	h->header.state = PERSEAS__STATE__STATE_CONSISTENT;
	h->header.log_size = 1 << 20;
	h->header.roster = &h->roster;
	h->header.n_segments = 2;
	h->header.segments = h->segment_list;
	return h;
}

struct message_header *message_status(Perseas__StoreStatus *status, Perseas__Slot *slot, unsigned i,
                                      uint64_t epoch)
{
	struct message_header *message = message_header_new();

	message->header.image_id = message->member_list[i]->image_id;
	perseas__slot__init(slot);
	slot->epoch = epoch;
	slot->seq = 100;
	slot->next = 4096;
	perseas__store_status__init(status);
	status->header = &message->header;
	status->slot = slot;
	return message;
}

/* Returns the number of the field that has messages of the body's type. */
static int field_of(const ProtobufCMessageDescriptor *whole, const ProtobufCMessage *body)
{
	for (unsigned i = 0; i < whole->n_fields; i++)
		if (whole->fields[i].descriptor == body->descriptor)
			return (int)whole->fields[i].id;
	abort();
}

Perseas__Request message_request(const void *body)
{
	Perseas__Request request = PERSEAS__REQUEST__INIT;

	request.body_case = (Perseas__Request__BodyCase)field_of(&perseas__request__descriptor,
	                                                         body);
	request.list = (void *)body; /* of a union of pointers */
	return request;
}

Perseas__Reply message_reply(const void *body)
{
	Perseas__Reply reply = PERSEAS__REPLY__INIT;

	reply.body_case = (Perseas__Reply__BodyCase)field_of(&perseas__reply__descriptor, body);
	reply.list = (void *)body;
	return reply;
}
