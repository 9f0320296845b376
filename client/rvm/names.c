/*
 * names.c - rvm_return, rvm_mode and rvm_type: the names of codes, for messages. The texts are
 * static; RVM's interface declares them without const.
 */
#include "rvm.h"

char *rvm_return(rvm_return_t code)
{
	switch (code) {
#define NAME(code)                          \
	case code: {                        \
		static char name[] = #code; \
		return name;                \
	}
		NAME(RVM_SUCCESS)
		NAME(RVM_EINIT)
		NAME(RVM_EINTERNAL)
		NAME(RVM_EIO)
		NAME(RVM_ELOG)
		NAME(RVM_ELOG_VERSION_SKEW)
		NAME(RVM_EMODE)
		NAME(RVM_ENAME_TOO_LONG)
		NAME(RVM_ENO_MEMORY)
		NAME(RVM_ENOT_MAPPED)
		NAME(RVM_EOFFSET)
		NAME(RVM_EOPTIONS)
		NAME(RVM_EOVERLAP)
		NAME(RVM_EPAGER)
		NAME(RVM_ERANGE)
		NAME(RVM_EREGION)
		NAME(RVM_EREGION_DEF)
		NAME(RVM_ESRC)
		NAME(RVM_ESTATISTICS)
		NAME(RVM_ESTAT_VERSION_SKEW)
		NAME(RVM_ETERMINATED)
		NAME(RVM_ETHREADS)
		NAME(RVM_ETID)
		NAME(RVM_ETOO_BIG)
		NAME(RVM_EUNCOMMIT)
		NAME(RVM_EVERSION_SKEW)
		NAME(RVM_EVM_OVERLAP)
	default: {
		static char none[] = "no code of RVM's";

		return none;
	}
	}
}

char *rvm_mode(rvm_mode_t mode)
{
	static char none[] = "no mode of RVM's";

	switch (mode) {
		NAME(restore)
		NAME(no_restore)
		NAME(flush)
		NAME(no_flush)
	case rvm_first_mode:
	case rvm_last_mode:
		break;
	}
	return none;
}

char *rvm_type(rvm_struct_id_t id)
{
	static char region[] = "rvm_region_t", options[] = "rvm_options_t", tid[] = "rvm_tid_t",
		    statistics[] = "rvm_statistics_t", none[] = "no type of RVM's";

	switch (id) {
	case rvm_region_id:
		return region;
	case rvm_options_id:
		return options;
	case rvm_tid_id:
		return tid;
	case rvm_statistics_id:
		return statistics;
	case rvm_first_struct_id:
	case rvm_last_struct_id:
		break;
	}
	return none;
}
