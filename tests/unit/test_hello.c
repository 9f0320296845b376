/*
 * test_hello.c - what a mirror of the version before must not be sent.
 */
#include "control_daemon.h"

struct unit_fixture unit_fixture = { setup, teardown };

/* A request that only this version knows is made before and after the mirror's version is known. */
TEST(a_later_message_is_not_sent_to_a_mirror_of_the_version_before, struct fixture *f)
{
	Perseas__ClaimRequest claim = PERSEAS__CLAIM_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	uint8_t id[PS_ID_SIZE] = { 1 };
	struct ps_error error = { 0 };
	struct ps_control *control = dial(f, &f->local);

	claim.store = (char *)(uintptr_t) "s";
	claim.daemon = (ProtobufCBinaryData){ sizeof(id), id };
	request.body_case = PERSEAS__REQUEST__BODY_CLAIM;
	request.claim = &claim;
	assert_int_equal(f->ops->send(control, &request, NULL), 0);
	welcome(&f->local, PS_CONTROL_MAGIC, PS_PROTOCOL_LEAST);
	expect_failure(f, control, soon(), PERSEAS_EVERSION, "upgrade its perseasd first");
	disconnect(f, control);
	close(f->local.fd);

	control = dial(f, &f->local);
	ask(f, control, "s");
	welcome(&f->local, PS_CONTROL_MAGIC, PS_PROTOCOL_LEAST);
	hear_hello(&f->local);
	hear(&f->local, "s");
	reply_with(&f->local, "here", 0, NULL, 0);
	expect_reply(f, control, soon(), "here");
	assert_int_equal(f->ops->send(control, &request, &error), PERSEAS_EVERSION);
	assert_non_null(strstr(error.text, "speaks version 8"));
	disconnect(f, control);
}
