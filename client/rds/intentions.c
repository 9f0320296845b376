/*
 * intentions.c - rds_fake_free and rds_do_free: lists of blocks that a transaction means to free.
 */
#include "../rvm/cancel.h"
#include "fail.h"
#include "heap.h"

#include <stdlib.h>

static int fail_no_list(void)
{
	return ps_rds_fail(EBAD_LIST, "list is NULL: pass a list of intentions");
}

static bool grow_table(intentionList_t *list)
{
	const unsigned long size = list->table ? list->size * 2 : STARTSIZE;
	char **table;

	if (list->table && list->count < list->size)
		return true;
	table = realloc(list->table, size * sizeof(*table));
	if (!table)
		return false;
	if (!list->table)
		list->count = 0;
	list->table = table;
	list->size = size;
	return true;
}

int rds_fake_free(char *addr, intentionList_t *list)
{
	PS_RVM_UNCANCELLED;
	uint64_t place, chunks;
	int code = SUCCESS;

	if (!list)
		return fail_no_list();
	pthread_mutex_lock(&ps_rds.lock);
	if (!ps_rds.base)
		code = ps_rds_fail(EHEAP_INIT, "no heap is started");
	if (code == SUCCESS)
		code = ps_rds_check_block(addr, &place, &chunks);
	pthread_mutex_unlock(&ps_rds.lock);
	if (code == SUCCESS && !grow_table(list))
		code = ps_rds_fail(RVM_ENO_MEMORY, "no memory for the list of intentions");
	if (code == SUCCESS)
		list->table[list->count++] = addr;
	return code;
}

static int flush_all(void)
{
	const rvm_return_t code = rvm_flush();

	return code == RVM_SUCCESS
	               ? SUCCESS
	               : ps_rds_fail_rvm(code, "the blocks are freed, but not permanently yet");
}

/* Commits with no_flush, and flushes separately. If mirrors do not answer then, the blocks are free
 * already and may be allocated again, so the list must be empty: the program must not free them
 * twice. */
int rds_do_free(intentionList_t *list, rvm_mode_t mode)
{
	PS_RVM_UNCANCELLED;
	rvm_tid_t own, *tid = NULL;
	int code;

	if (!list)
		return fail_no_list();
	if (mode != flush && mode != no_flush)
		return ps_rds_fail(RVM_EMODE, "a transaction ends with flush or no_flush");
	if (!list->table)
		return SUCCESS;
	code = ps_rds_begin_change(&tid, &own);
	if (code != SUCCESS)
		return code;
	for (unsigned long i = 0; i < list->count && code == SUCCESS; i++)
		code = ps_rds_free_block(tid, list->table[i]);
	code = ps_rds_end_change(tid, &own, code);
	if (code != SUCCESS)
		return code;
	free(list->table);
	*list = (intentionList_t){ 0 };
	return mode == flush ? flush_all() : SUCCESS;
}
