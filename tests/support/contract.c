/*
 * contract.c - where a clause of a contract says what did not hold (contract.h).
 */
#include "contract.h"

char clause_broken[256];
