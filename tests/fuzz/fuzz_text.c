/*
 * fuzz_text.c - any text of a peer, as a string of JSON and as a label of a metric: each is closed
 * by its quote and by nothing before, is UTF-8, and has no control character.
 */
#include "../../proto/base/json.h"
#include "../../proto/base/text.h"
#include "../../server/watch/metrics.h"
#include "target.h"

static void require_quoted(const char *text, size_t len, const char *escapes)
{
	const char *at = text;

	require(strlen(text) == len);
	require(len >= 2 && text[0] == '"' && text[len - 1] == '"');
	for (at++; at < text + len - 1; at += ps_utf8_length(at)) {
		require(ps_utf8_length(at) > 0 && !ps_is_control(at) && *at != '"');
		if (*at == '\\') {
			at++;
			require(at < text + len - 1 && strchr(escapes, *at));
		}
	}
	require(at == text + len - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *out = NULL;
	struct ps_json json = { .one_line = true };
	size_t len = 0;
	FILE *file;

	memcpy(text, data, size);
	text[size] = '\0';
	json.out = open_memstream(&out, &len);
	ps_json_text(&json, NULL, text);
	fclose(json.out);
	require_quoted(out, len, "\"\\u");
	free(out);
	file = open_memstream(&out, &len);
	metrics_label(file, text);
	fclose(file);
	require_quoted(out, len, "\"\\");
	free(out);
	free(text);
	return 0;
}
