# The fuzz targets, the replayers, the tools that write seeds, and the two suites: `fuzz` replays the
# recorded inputs by day, and `fuzz-night` fuzzes. The Makefile includes this file. CONTRIBUTING.md
# says what needs a target.

FUZZ_TARGETS := $(patsubst %.c,$(BUILD)/%,$(call sources,tests/fuzz/fuzz_*.c))
FUZZ_TOOLS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/make_*.c))
REPLAYERS := $(FUZZ_TARGETS:$(BUILD)/tests/fuzz/fuzz_%=$(BUILD)/tests/fuzz/replay_%)
# As SANITIZED of tests/check.mk.
FUZZING := CC=$(CLANG) SANITIZE=fuzzer-no-link,address,undefined BUILD=build/fuzz CFLAGS="-O2 -g1"
FUZZ_SECONDS ?= 60

# How many inputs a replayer derives from the corpus: so many that it takes about half a second.
# Targets with sockets or a store take longer for each.
derived = $(if $(filter %/tls,$1),100,$(if $(filter %/connection %/fetch,$1),500,$(if \
	$(filter %/control %/heap %/http %/top,$1),5000,20000)))

.PHONY: fuzzers replayers check-fuzz check-fuzz-night corpus
fuzzers: $(FUZZ_TARGETS)
replayers: $(REPLAYERS)
tests: $(FUZZ_TOOLS)

# Built with CC=clang SANITIZE=fuzzer-no-link,…; libFuzzer brings main.
$(BUILD)/tests/fuzz/fuzz_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(TEST_ARCHIVE)
	$(link) -fsanitize=fuzzer -lcmocka $(TEST_LIBS)

# The same objects with the main of replay.c, for every compiler.
$(BUILD)/tests/fuzz/replay_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(addprefix \
		$(BUILD)/obj/tests/fuzz/,replay.o derive.o) $(TEST_ARCHIVE)
	$(link) $(QUICK_LINK) -lcmocka $(TEST_LIBS)

$(BUILD)/tests/fuzz/make_%: $(BUILD)/obj/tests/fuzz/make_%.o $(TEST_ARCHIVE)
	$(link) $(TEST_LIBS)

check-fuzz:
	@$(SUBMAKE) replayers
	@$(RUN) fuzz --jobs 2 "recorded seeds: tests/fuzz/report.py tests/fuzz" \
		$(foreach c,$(REPLAYERS:$(BUILD)/tests/fuzz/replay_%=tests/fuzz/corpus/%),"$(notdir $c): \
			$(BUILD)/tests/fuzz/replay_$(notdir $c) $(call derived,$c) $c")

#: check-fuzz-night  fuzzes each target for FUZZ_SECONDS (60), from FUZZ_SEED or a random seed
check-fuzz-night: export FUZZ_SEED := $(FUZZ_SEED)
check-fuzz-night:
	@deploy/deps.sh build test night
	@$(SUBMAKE) $(FUZZING) fuzzers
	@$(RUN) fuzz-night --jobs 2 $(foreach t,$(FUZZ_TARGETS),\
		"$(notdir $(t)): tests/fuzz/run.sh $(t:$(BUILD)/%=build/fuzz/%) $(FUZZ_SECONDS)")
	@$(PYTHON) tests/fuzz/report.py tests/fuzz build/results/fuzz-night

# Writes the seeds anew, after a change of a format: those that encoders make, and those that are
# recorded from sessions of real daemons. SESSIONS names the sessions of record.py to record; the
# recordings of other sessions stay.
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
