/*
 * fuzz_reply.c - any bytes as a reply. What is accepted can be packed, and is accepted
 * again.
 */
#include "../../proto/control/envelope.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Perseas__Reply *reply, *again;
	const char *why = NULL;
	uint8_t *bytes;
	size_t len;

	reply = ps_reply_unpack(data, size, &why);
	assert((reply == NULL) == (why != NULL));
	if (!reply)
		return 0;
	if (ps_reply_pack(reply, &bytes, &len) == 0) {
		again = ps_reply_unpack(bytes + 4, len - 4, &why);
		assert(again && again->body_case == reply->body_case);
		perseas__reply__free_unpacked(again, NULL);
		free(bytes);
	}
	perseas__reply__free_unpacked(reply, NULL);
	return 0;
}
