/*
 * test_machine.c - daemons on one machine, whatever their labels say: each tells the boot of its
 * host, and no two of them get images of one store.
 */
#include "check_rig.h"
#include "store_rig.h"

#include "../../client/command/place/place.h"
#include "../../proto/control/loss.h"
#include "../../proto/data/frame.h"
#include "../../server/store/control.h"

struct unit_fixture unit_fixture = { setup, teardown };

static Perseas__Reply *ask_host(struct mirror *mirror, unsigned version)
{
	Perseas__HostRequest host = PERSEAS__HOST_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct control_reply control;
	Perseas__Reply *reply;
	struct peer peer;
	const char *why;
	uint8_t *bytes;
	size_t len;

	peer_init(&peer);
	peer.session.version = version;
	request.body_case = PERSEAS__REQUEST__BODY_HOST;
	request.host = &host;
	assert_int_equal(ps_request_pack(&request, &bytes, &len), 0);
	assert_int_equal(control_handle(mirror->stores, &peer.session, "1.2.3", bytes + 4, len - 4,
	                                &control),
	                 0);
	reply = ps_reply_unpack(control.bytes + 4, control.len - 4, &why);
	assert_non_null(reply);
	assert_int_equal(reply->status, PERSEAS__STATUS__STATUS_OK);
	free(control.bytes);
	free(bytes);
	return reply;
}

/* A client of the version before does not know the field. */
TEST(a_daemon_tells_the_boot_of_its_host, struct mirror *mirror)
{
	for (unsigned version = 8; version <= PS_PROTOCOL_VERSION; version++) {
		Perseas__Reply *reply = ask_host(mirror, version);

		assert_int_equal(reply->host->boot.len, version >= 9 ? PS_ID_SIZE : 0);
		if (reply->host->boot.len)
			assert_memory_equal(reply->host->boot.data,
			                    mirror->memory->ops->boot(mirror->memory), PS_ID_SIZE);
		perseas__reply__free_unpacked(reply, NULL);
	}
}

/* A daemon's, and an owner's. */
TEST_WITH(a_boot_of_another_length_is_refused, NULL, NULL)
{
	Perseas__HostReply host = PERSEAS__HOST_REPLY__INIT;
	Perseas__Reply told = MESSAGE_REPLY(host, HOST, &host);
	Perseas__ConfirmRequest confirm = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__Request confirms = MESSAGE_REQUEST(confirm, CONFIRM, &confirm);
	uint8_t boot[PS_ID_SIZE + 1] = { 1 };

	host.boot.data = confirm.boot.data = boot;
	assert_accepted(told);
	assert_accepted(confirms);
	assert_accepted_with(told, host.boot.len, PS_ID_SIZE);
	assert_accepted_with(confirms, confirm.boot.len, PS_ID_SIZE);
	for (size_t len = PS_ID_SIZE - 1; len <= PS_ID_SIZE + 1; len += 2) {
		assert_refused_with(told, host.boot.len, len);
		assert_refused_with(confirms, confirm.boot.len, len);
	}
}

static void locate(struct ps_spot *spot, const char *host, uint8_t machine)
{
	uint8_t id[PS_ID_SIZE] = { machine };
	const ProtobufCBinaryData boot = { machine ? PS_ID_SIZE : 0, id };

	*spot = (struct ps_spot){ .address = host, .room = 10 };
	ps_spot_set_labels(spot, host, host, "z", &boot);
}

/* Containers a and b, with hosts and racks of their own by their labels, and another machine. */
TEST_WITH(containers_on_one_machine_get_one_image_of_a_store, NULL, NULL)
{
	struct ps_wish wish = { .copies = 2, .apart = PS_DOMAIN_RACK };
	const unsigned both[] = { 0, 1 }, apart[] = { 1, 2 };
	struct ps_spot spots[3];
	unsigned chosen[3];
	char why[PS_PLACE_WHY];

	locate(&spots[0], "a", 1);
	locate(&spots[1], "b", 1);
	locate(&spots[2], "c", 2);
	assert_int_equal(ps_smallest_shared_host(spots, 3).spots, 1 << 0 | 1 << 1);
	assert_int_equal(ps_spots_widest_apart(spots, both, 2), PS_DOMAINS);
	assert_int_equal(ps_spots_widest_apart(spots, apart, 2), PS_DOMAIN_RACK);
	assert_true(ps_spots_choose(spots, 3, &wish, chosen, why));
	assert_true((chosen[0] == 2) != (chosen[1] == 2));
	wish.copies = 3;
	wish.apart = PS_DOMAIN_HOST;
	assert_false(ps_spots_choose(spots, 3, &wish, chosen, why));
	assert_non_null(strstr(why, "1 run on the machine of another one"));
	/* A closed spot is not one to choose, so no other one runs on its machine. */
	spots[0].closed = true;
	assert_false(ps_spots_choose(spots, 3, &wish, chosen, why));
	assert_non_null(strstr(why, "0 run on the machine of another one"));
}

TEST_WITH(daemons_that_tell_no_boot_are_told_apart_by_their_labels, NULL, NULL)
{
	const struct ps_wish wish = { .copies = 2, .apart = PS_DOMAIN_HOST };
	struct ps_spot spots[2];
	unsigned chosen[2];
	char why[PS_PLACE_WHY];

	locate(&spots[0], "a", 0);
	locate(&spots[1], "b", 0);
	assert_true(ps_spots_choose(spots, 2, &wish, chosen, why));
}
