/*
 * metrics_format.c - see metrics_format.h.
 */
#include "metrics_format.h"

#include "metrics.h"
#include "../../proto/base/text.h"

#include <assert.h>
#include <inttypes.h>

void metrics_label(FILE *out, const char *text)
{
	fputc('"', out);
	while (*text) {
		size_t plain = ps_plain_length(text);
		unsigned length = ps_utf8_length(text += plain);

		fwrite(text - plain, 1, plain, out);
		if (!*text)
			break;
		if (length == 0 || ps_is_control(text))
			fputs("\xef\xbf\xbd", out);
		else if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else
			fwrite(text, 1, length, out);
		text += length ? length : 1;
	}
	fputc('"', out);
}

static void begin_sample(struct sheet *sheet, const char *suffix, const struct label *labels)
{
	assert(sheet->name);
	fputs(sheet->name, sheet->out);
	fputs(suffix, sheet->out);
	for (unsigned i = 0; i < LABELS_MAX && labels && labels[i].name; i++) {
		fputc(i ? ',' : '{', sheet->out);
		fputs(labels[i].name, sheet->out);
		fputc('=', sheet->out);
		metrics_label(sheet->out, labels[i].value);
	}
	fputs(labels && labels[0].name ? "} " : " ", sheet->out);
}

void metric_number(struct sheet *sheet, const struct label *labels, uint64_t value)
{
	begin_sample(sheet, "", labels);
	fprintf(sheet->out, "%" PRIu64 "\n", value);
}

void metric_seconds(struct sheet *sheet, const char *suffix, const struct label *labels,
                    uint64_t ns)
{
	begin_sample(sheet, suffix, labels);
	fprintf(sheet->out, "%" PRIu64 ".%09u\n", ns / 1000000000, (unsigned)(ns % 1000000000));
}

void metric_bucket(struct sheet *sheet, struct label of, uint64_t bound_ns, uint64_t count)
{
	char bound[32] = "+Inf";

	if (bound_ns)
		snprintf(bound, sizeof(bound), "%.10g", (double)bound_ns / 1e9);
	begin_sample(sheet, "_bucket", LABELS(of, { "le", bound }));
	fprintf(sheet->out, "%" PRIu64 "\n", count);
}

void metric_end_buckets(struct sheet *sheet, struct label of, uint64_t sum_ns, uint64_t count)
{
	metric_bucket(sheet, of, 0, count);
	metric_seconds(sheet, "_sum", LABELS(of), sum_ns);
	begin_sample(sheet, "_count", LABELS(of));
	fprintf(sheet->out, "%" PRIu64 "\n", count);
}
