/*
 * test_store_roster.c - what a mirror makes of the rosters that its owner tells it (I9).
 */
#include "bank_rig.h"

struct unit_fixture unit_fixture = { setup_bank, teardown };

/* A roster of `count` images, the first of which is 100. */
struct told {
	Perseas__Roster roster;
	Perseas__Member members[4], *list[4];
	uint8_t ids[4][PS_ID_SIZE];
};

static Perseas__Roster *roster(struct told *told, uint64_t epoch, uint64_t version, unsigned count)
{
	perseas__roster__init(&told->roster);
	memset(told->ids, 0, sizeof(told->ids));
	for (unsigned i = 0; i < count; i++) {
		perseas__member__init(&told->members[i]);
		told->ids[i][0] = (uint8_t)(100 + i);
		told->members[i].address = (char *)"127.0.0.1:7170";
		told->members[i].image_id = (ProtobufCBinaryData){ PS_ID_SIZE, told->ids[i] };
		told->list[i] = &told->members[i];
	}
	told->roster.epoch = epoch;
	told->roster.version = version;
	told->roster.acks = 1;
	told->roster.n_members = count;
	told->roster.members = told->list;
	return &told->roster;
}

static int tell(struct mirror *mirror, struct peer *peer, uint64_t epoch, uint64_t version,
                unsigned count)
{
	Perseas__RosterRequest request = PERSEAS__ROSTER_REQUEST__INIT;
	struct told told;

	request.roster = roster(&told, epoch, version, count);
	request.settled = true;
	return store_roster(&peer->session, &request, &mirror->why);
}

/* An owner's rosters come in order; one that comes late must not bring back who has left. */
TEST(an_older_roster_is_refused, struct mirror *mirror)
{
	assert_int_equal(tell(mirror, &holder, 4, 7, 2), 0);
	assert_int_equal(tell(mirror, &holder, 4, 6, 3), -STATUS(BAD_STATE));
	assert_int_equal(tell(mirror, &holder, 3, 8, 3), -STATUS(BAD_STATE));
	assert_int_equal(mirror_header(mirror, "bank")->roster->n_members, 2);
	assert_int_equal(tell(mirror, &holder, 4, 7, 2), 0);
	assert_int_equal(tell(mirror, &holder, BANK_EPOCH, 1, 3), 0);
	assert_int_equal(mirror_header(mirror, "bank")->roster->n_members, 3);
}

static int rebuild_beside(struct mirror *mirror, struct peer *peer)
{
	const Perseas__Header *now = mirror_header(mirror, "bank");
	Perseas__RebuildRequest request = PERSEAS__REBUILD_REQUEST__INIT;
	Perseas__RebuildReply reply = PERSEAS__REBUILD_REPLY__INIT;
	Perseas__Header header = PERSEAS__HEADER__INIT;

	header.store = (char *)"bank";
	header.store_id = now->store_id;
	header.image_id = now->image_id;
	header.log_size = now->log_size;
	header.roster = now->roster;
	request.header = &header;
	request.epoch = BANK_EPOCH;
	request.owner = OWNER(BANK_OWNER);
	return store_rebuild(mirror->stores, &peer->session, &request, &reply, &mirror->why);
}

/* The image beside takes the place of the one that is there: it must know the newest roster too. */
TEST(the_image_beside_learns_of_a_roster, struct mirror *mirror)
{
	Perseas__FinishReply reply = PERSEAS__FINISH_REPLY__INIT;
	struct ps_slot slot;

	assert_int_equal(rebuild_beside(mirror, &holder), 0);
	assert_int_equal(tell(mirror, &holder, BANK_EPOCH, 9, 3), 0);
	ps_slot_encode(&slot, BANK_EPOCH, 1, 64, 0);
	memcpy(session_memory(&holder.session, PS_REGION_LOG, 0, sizeof(slot), true), &slot,
	       sizeof(slot));
	assert_int_equal(store_finish(&holder.session, &reply, &mirror->why), 0);
	assert_int_equal(mirror_header(mirror, "bank")->state, PERSEAS__STATE__STATE_CONSISTENT);
	assert_int_equal(mirror_header(mirror, "bank")->roster->n_members, 3);
	assert_int_equal(mirror_header(mirror, "bank")->roster->version, 9);
}
