/*
 * check_grant.c - checks grants, by which a mirror describes its memory, and requests for parts of
 * that memory. check.c calls it.
 */
#include "check_grant.h"

#include "check.h"
#include "envelope.h"
#include "../base/keyed_digest_tls.h"
#include "../base/text.h"

#define DIGEST_MAX ((uint64_t)64 << 20)

static const char bad_store[] =
	"a store's name must be 1 to 63 of A-Z a-z 0-9 . _ - and begin with no dot";
static const char bad_region[] = "a region must be the log, the promise or a segment";

bool ps_region_valid(uint32_t region)
{
	return region == PS_REGION_LOG || region == PS_REGION_PROMISE ||
	       (region >= PS_REGION_SEGMENT && region < PS_REGIONS_MAX);
}

static bool region_length_valid(const Perseas__Region *region)
{
	if (region->id == PS_REGION_LOG)
		return region->length >= PS_RING_OFFSET + PS_LOG_MIN &&
		       region->length <= PS_RING_OFFSET + PS_LOG_MAX;
	if (region->id == PS_REGION_PROMISE)
		return region->length >= sizeof(struct ps_promise) && region->length <= PS_PAGE;
	return region->length >= 1 && region->length <= PS_SEGMENT_MAX;
}

const char *ps_grant_fault(const Perseas__Grant *grant)
{
	bool seen[PS_REGIONS_MAX] = { false };

	if (!grant)
		return "the grant is missing";
	if (!ps_id_valid(grant->token))
		return "the token of a grant must be 16 bytes, not all zero";
	if (grant->descriptors != 0 && grant->descriptors != grant->n_regions)
		return "a grant must come with a descriptor for each region, or with none";
	if (grant->rdma_port > 65535)
		return "the address of the rdma listener is not one";
	for (size_t i = 0; i < grant->n_regions; i++) {
		const Perseas__Region *region = grant->regions[i];

		if (!ps_region_valid(region->id) || seen[region->id] ||
		    !region_length_valid(region))
			return "a grant must name known regions, each once, of a possible size";
		seen[region->id] = true;
	}
	return NULL;
}

const char *ps_digest_fault(const Perseas__DigestRequest *digest)
{
	if (!ps_name_valid(digest->store))
		return bad_store;
	if (!ps_region_valid(digest->region))
		return bad_region;
	if (digest->length > DIGEST_MAX || digest->offset > UINT64_MAX - digest->length)
		return "a digest must be of 64 MiB or less, inside its region";
	if (!digest->key.len)
		return NULL;
	if (digest->key.len != PS_DIGEST_KEY)
		return "the key of digests must be 16 bytes";
	if (digest->offset % PS_GRANULE || digest->length < 1 ||
	    digest->length > (uint64_t)PS_DIGESTS_MAX * PS_GRANULE)
		return "digests with a key must be of 1 byte to 4 MiB, from the beginning of a "
		       "granule on";
	return NULL;
}

const char *ps_digest_reply_fault(const Perseas__DigestReply *reply)
{
	if (reply->digests.len % PS_DIGEST ||
	    reply->digests.len > (size_t)PS_DIGESTS_MAX * PS_DIGEST)
		return "digests must be 16 bytes for each granule of 4 MiB at most";
	return ps_slot_fault(reply->slot);
}

const char *ps_read_fault(const Perseas__ReadRequest *read)
{
	if (!ps_name_valid(read->store))
		return bad_store;
	if (!ps_region_valid(read->region))
		return bad_region;
	if (read->length < 1 || read->length > PS_READ_REQUEST_MAX ||
	    read->offset > UINT64_MAX - read->length)
		return "a read must be of 1 byte to 512 KiB, inside its region";
	return NULL;
}

const char *ps_read_reply_fault(const Perseas__ReadReply *read)
{
	return read->bytes.len >= 1 && read->bytes.len <= PS_READ_REQUEST_MAX
	               ? NULL
	               : "what was read must be 1 byte to 512 KiB";
}
