# The fuzz targets, the tools that write their seeds, and the lane that runs them. The Makefile
# includes it. CONTRIBUTING.md says what needs a target.

FUZZ_TARGETS := $(patsubst %.c,$(BUILD)/%,$(call sources,tests/fuzz/fuzz_*.c))
FUZZ_TOOLS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/make_*.c))
FUZZ_SECONDS ?= 4
# As SANITIZED of tests/check.mk.
FUZZING := CC=$(CLANG) SANITIZE=fuzzer-no-link,address,undefined BUILD=build/fuzz CFLAGS="-O2 -g1"

.PHONY: fuzzers check-fuzz corpus
fuzzers: $(FUZZ_TARGETS)
tests: $(FUZZ_TOOLS)

# Built with CC=clang SANITIZE=fuzzer-no-link,…; libFuzzer brings main.
$(BUILD)/tests/fuzz/fuzz_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(TEST_ARCHIVE)
	$(link) -fsanitize=fuzzer -lcmocka $(TEST_LIBS)

$(BUILD)/tests/fuzz/make_%: $(BUILD)/obj/tests/fuzz/make_%.o $(TEST_ARCHIVE)
	$(link) $(TEST_LIBS)

check-fuzz:
	@$(SUBMAKE) $(FUZZING) fuzzers
	@$(RUN) fuzz --jobs 2 $(foreach t,$(FUZZ_TARGETS),\
		"$(notdir $(t)): tests/fuzz/run.sh $(t:$(BUILD)/%=build/fuzz/%) $(FUZZ_SECONDS)")
	@$(PYTHON) tests/fuzz/report.py build/results/fuzz tests/fuzz/corpus

# Writes the seeds anew, after a change of a format: those that encoders make, and those that are
# recorded from sessions of real daemons; SESSIONS names those of record.py that are to be recorded,
# and what is recorded of others stays.
#: corpus          writes the seeds of the fuzz targets anew
corpus: all $(FUZZ_TOOLS)
	$(BUILD)/tests/fuzz/make_corpus tests/fuzz/corpus
	$(BUILD)/tests/fuzz/make_control tests/fuzz/corpus
	$(BUILD)/tests/fuzz/make_top tests/fuzz/corpus
	$(BUILD)/tests/fuzz/make_heap tests/fuzz/corpus
	$(BUILD)/tests/fuzz/make_rvm tests/fuzz/corpus
	$(BUILD)/tests/fuzz/make_rds tests/fuzz/corpus
	@$(SUBMAKE) $(FUZZING) fuzzers
	@PERSEAS_BUILD=$(abspath $(BUILD)) $(PYTHON) tests/fuzz/record.py build/fuzz/tests/fuzz \
		tests/fuzz/corpus $(SESSIONS)
