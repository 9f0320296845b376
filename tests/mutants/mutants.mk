# The suites that edit the product's code and see whether the tests find each edit. The Makefile
# includes it; tests/mutants/README.md says what the edits are. By day the edits of files that changed
# since the last night are tried, for MUTANT_SECONDS at most; by night all of them.

MUTANTS ?=
MUTANT_SECONDS ?= 60
EDITS := $(PYTHON) tests/mutants/run.py
.PHONY: check-mutants check-mutants-all mutant-flags

mutant-flags:
	@$(SUBMAKE) all tests python
	$(shell mkdir -p build/mutants)
	$(file >build/mutants/flags,$(COMPILE) -I$(RVM))
	$(file >>build/mutants/flags,$(LINK))
	$(file >>build/mutants/flags,-lcmocka $(TEST_LIBS))
	$(file >>build/mutants/flags,$(SIM_WRAPPED:%=-Wl,--wrap=%))
	$(file >>build/mutants/flags,$(SIM_TESTS))

check-mutants: mutant-flags
	@$(RUN) mutants "edits: $(EDITS) --day $(MUTANT_SECONDS)"

#: check-mutants-all   a test must find each edit of tests/mutants; MUTANTS="--only WORD" tries some
check-mutants-all: mutant-flags
	@$(RUN) mutants-all "edits: $(EDITS) $(MUTANTS)"
