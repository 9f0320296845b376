/*
 * fuzz_header.c - any bytes as a header file. What is accepted passes the checks of a
 * header, can be copied, packed, and is accepted again.
 *
 * The first byte says whether length and checksum are made right.
 */
#include "../../proto/image/crc32c.h"
#include "../../proto/control/envelope.h"
#include "target.h"

static void use(const Perseas__Header *header)
{
	Perseas__Header *copy = ps_header_copy(header), *again;
	const char *why = NULL;
	uint8_t *bytes;
	size_t len;

	/* That of an image has the store's key, too. */
	assert(copy && ps_header_valid(copy, &why) == !why);
	assert(copy->roster->level <= PS_LEVEL_MAX);
	assert(ps_image_size(copy) >= ps_log_region_size(copy));
	assert(ps_header_pack(copy, &bytes, &len) == 0);
	again = ps_header_unpack(bytes, len, &why);
	assert(again);
	perseas__header__free_unpacked(again, NULL);
	perseas__header__free_unpacked(copy, NULL);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ps_header_file head;
	Perseas__Header *header;
	const char *why = NULL;
	uint8_t *bytes;

	if (size < 1)
		return 0;
	bytes = malloc(size);
	memcpy(bytes, data + 1, --size);
	if (data[0] & 1 && size >= sizeof head) {
		memcpy(&head, bytes, sizeof head);
		head.length = (uint32_t)(size - sizeof head);
		head.crc = ps_crc32c(0, bytes + sizeof head, head.length);
		memcpy(bytes, &head, sizeof head);
	}
	header = ps_header_unpack(bytes, size, &why);
	assert((header == NULL) == (why != NULL));
	free(bytes);
	if (header) {
		use(header);
		perseas__header__free_unpacked(header, NULL);
	}
	return 0;
}
