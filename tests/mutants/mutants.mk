# The lane that edits the product's code and sees whether the tests find each edit. The Makefile
# includes it; tests/mutants/README.md says what the edits are. `make check` looks at a tenth of them,
# another one each day; `make check-mutants` at all.

MUTANTS ?=
check-beside: export MUTANTS = --sample $(shell date +%Y%m%d)/10
.PHONY: check-mutants

#: check-mutants   every edit of tests/mutants must be found by a test (check: a tenth of them)
check-mutants:
	@$(SUBMAKE) all tests python
	$(shell mkdir -p build/mutants)
	$(file >build/mutants/flags,$(COMPILE) -I$(RVM))
	$(file >>build/mutants/flags,$(LINK))
	$(file >>build/mutants/flags,-lcmocka $(TEST_LIBS))
	$(file >>build/mutants/flags,$(SIM_WRAPPED:%=-Wl,--wrap=%))
	@$(RUN) mutants --timeout 7200 "edits: $(PYTHON) tests/mutants/run.py $(MUTANTS)"
