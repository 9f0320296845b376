/*
 * fuzz_request.c - any bytes as a request. What is accepted can be packed, and is accepted
 * again.
 */
#include "../../proto/control/envelope.h"
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Perseas__Request *request, *again;
	const char *why = NULL;
	uint8_t *bytes;
	size_t len;

	request = ps_request_unpack(data, size, &why);
	assert((request == NULL) == (why != NULL));
	if (!request)
		return 0;
	if (ps_request_pack(request, &bytes, &len) == 0) {
		again = ps_request_unpack(bytes + 4, len - 4, &why);
		assert(again && again->body_case == request->body_case);
		perseas__request__free_unpacked(again, NULL);
		free(bytes);
	}
	perseas__request__free_unpacked(request, NULL);
	return 0;
}
