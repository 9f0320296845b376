/*
 * model.c - what the store holds after each transaction, and which came from which.
 */
#include "crash.h"

static int add_state(struct model *model, uint64_t epoch, uint64_t seq, int parent)
{
	if (model->count == model->capacity) {
		model->capacity = model->capacity ? 2 * model->capacity : 64;
		model->states = realloc(model->states,
		                        (size_t)model->capacity * sizeof(*model->states));
		assert(model->states);
	}
	memset(&model->states[model->count], 0, sizeof(*model->states));
	model->states[model->count].epoch = epoch;
	model->states[model->count].seq = seq;
	model->states[model->count].parent = parent;
	return model->count++;
}

void model_init(struct model *model)
{
	memset(model, 0, sizeof(*model));
	add_state(model, 0, 0, -1);
}

static void free_state(struct state *state)
{
	for (unsigned i = 0; i < state->count; i++)
		free(state->segments[i].bytes);
}

void model_free(struct model *model)
{
	for (int i = 0; i < model->count; i++)
		free_state(&model->states[i]);
	free(model->states);
	memset(model, 0, sizeof(*model));
}

void model_add_segment(struct model *model, int at, uint32_t id, const char *name,
                       const uint8_t *bytes, uint64_t size)
{
	struct state *state = &model->states[at];
	unsigned i = state->count++;

	assert(i < MODEL_SEGMENTS);
	state->segments[i].id = id;
	state->segments[i].size = size;
	snprintf(state->segments[i].name, sizeof(state->segments[i].name), "%s", name);
	state->segments[i].bytes = malloc(size);
	assert(state->segments[i].bytes);
	memcpy(state->segments[i].bytes, bytes, size);
}

void model_remove_segment(struct model *model, int at, uint32_t id)
{
	struct state *state = &model->states[at];
	unsigned i = 0;

	while (state->segments[i].id != id)
		i++;
	free(state->segments[i].bytes);
	state->segments[i] = state->segments[--state->count];
}

int model_derive(struct model *model, int parent, uint64_t epoch, uint64_t seq)
{
	int at = add_state(model, epoch, seq, parent);
	const struct state *from = &model->states[parent];

	for (unsigned i = 0; i < from->count; i++)
		model_add_segment(model, at, from->segments[i].id, from->segments[i].name,
		                  from->segments[i].bytes, from->segments[i].size);
	return at;
}

void model_drop(struct model *model)
{
	free_state(&model->states[--model->count]);
}

uint8_t *model_segment(struct model *model, int at, uint32_t id)
{
	const struct state *state = &model->states[at];

	for (unsigned i = 0; i < state->count; i++)
		if (state->segments[i].id == id)
			return state->segments[i].bytes;
	return NULL;
}

bool model_contains(const struct model *model, int state, int older)
{
	while (state > older)
		state = model->states[state].parent;
	return state == older;
}

bool model_equal(const struct model *model, int at, const struct ps_image *image)
{
	const struct state *state = &model->states[at];

	for (unsigned i = 0; i < state->count; i++) {
		uint32_t id = state->segments[i].id;
		uint64_t size = state->segments[i].size;

		if (!image->segments[id].base || image->segments[id].size != size ||
		    memcmp(image->segments[id].base, state->segments[i].bytes, size) != 0)
			return false;
	}
	return true;
}

static bool is_owners(const struct model *model, uint64_t epoch)
{
	for (int i = 0; i < model->count; i++)
		if (model->states[i].epoch == epoch)
			return true;
	return false;
}

int model_find(const struct model *model, uint64_t epoch, uint64_t seq,
               const struct ps_image *image)
{
	for (int i = model->count - 1; i >= 0; i--)
		if (model->states[i].seq == seq && model->states[i].epoch == epoch)
			return i;
	if (is_owners(model, epoch))
		return -1;
	for (int i = model->count - 1; i >= 0; i--)
		if (model->states[i].seq == seq && model_equal(model, i, image))
			return i;
	return -1;
}
