/*
 * cmd_place.c - perseas place: chooses the mirrors of a new store.
 */
#include "command.h"
#include "ask/survey.h"
#include "../../proto/base/json.h"

#include <string.h>

static void spot_json(struct ps_json *json, const struct ps_spot *spot)
{
	ps_json_begin(json, NULL, '{');
	ps_json_text(json, "address", spot->address);
	for (unsigned i = PS_DOMAIN_HOST; i < PS_DOMAINS; i++)
		ps_json_text(json, ps_domain_name((enum ps_domain)i),
		             *spot->labels[i] ? spot->labels[i] : NULL);
	ps_json_number(json, "memory_used", spot->used);
	ps_json_number(json, "memory_room", spot->room);
	ps_json_number(json, "stores", spot->stores);
	ps_json_number(json, "load_thousandths", spot->load);
	ps_json_end(json, '}');
}

static void print_json(const struct ps_survey *survey, const struct ps_wish *wish,
                       const unsigned *chosen, const char *why)
{
	struct ps_json json = { .out = stdout };

	ps_json_begin(&json, NULL, '{');
	ps_json_bool(&json, "placed", !why);
	ps_json_text(&json, "apart", ps_domain_name(wish->apart));
	ps_json_text(&json, "error", why);
	ps_json_number(&json, "daemons", survey->spot_count);
	ps_json_number(&json, "unreachable", survey->silent_count);
	ps_json_begin(&json, "mirrors", '[');
	for (unsigned i = 0; !why && i < wish->copies; i++)
		spot_json(&json, &survey->spots[chosen[i]]);
	ps_json_end(&json, ']');
	ps_json_end(&json, '}');
}

/* Prints the chosen addresses as --mirrors takes them. */
static void print_list(const struct ps_survey *survey, const struct ps_wish *wish,
                       const unsigned *chosen)
{
	for (unsigned i = 0; i < wish->copies; i++)
		printf("%s%s", i ? "," : "", survey->spots[chosen[i]].address);
	printf("\n");
}

static enum ps_exit show_place(const struct ps_survey *survey, const struct ps_args *args)
{
	struct ps_wish wish = { .copies = args->copies, .bytes = args->image_size };
	unsigned chosen[PS_MIRRORS_MAX];
	char why[PS_PLACE_WHY];
	bool placed;

	wish.apart = args->apart ? ps_domain_by_name(args->apart)
	                         : ps_spots_widest_named_domain(survey->spots, survey->spot_count);
	if (wish.apart == PS_DOMAINS)
		wish.apart = PS_DOMAIN_HOST;
	placed = ps_spots_choose(survey->spots, survey->spot_count, &wish, chosen, why);
	if (args->json)
		print_json(survey, &wish, chosen, placed ? NULL : why);
	else if (placed)
		print_list(survey, &wish, chosen);
	if (!placed)
		return ps_complain(PS_EXIT_NO, "%s", why);
	return survey->silent_count ? PS_EXIT_PARTLY : PS_EXIT_OK;
}

enum ps_exit ps_verb_place(const struct ps_args *args)
{
	struct ps_survey survey;
	enum ps_exit status = ps_survey_ask_daemons(&survey, args->mirrors, &args->options);

	if (status)
		return status;
	status = show_place(&survey, args);
	ps_survey_free(&survey);
	return status;
}
