# The suites of `make check` and `make check-night`. Each suite is a target of its own, check-SUITE,
# and runs its commands through tests/run.py; tests/check.py runs all of them, and prints a line for
# each. The Makefile includes this file. Suites with more to them have a file next to their tests:
# lint.mk, fuzz/, cpp/, mutants/, rdma/, ../proto/model/.

.PHONY: check check-night check-build check-clang check-no-rdma check-unit check-unit-sanitized \
	check-litmus check-sim check-sim-night check-crash check-crash-sanitized check-drills check-drills-night \
	check-timing check-instructions check-install check-tarball check-anywhere check-unstable \
	kills soak coverage

RUN := $(PYTHON) tests/run.py

# Drills mostly wait, so they run next to what computes.
FIRST := build
WAITING := drills python
BUSY := headers abi style format unit sim crash model fuzz cpp instructions install mutants
NIGHT := litmus unit-sanitized crash-sanitized tarball no-rdma clang lint model-whole sim-night mutants-all \
	rdma timing drills-night fuzz-night cpp-night anywhere unstable deb rpm container cluster ansible \
	service peers rdma-siw
SUITES := $(FIRST) $(WAITING) $(BUSY)

#: check           every suite of the day; the last line sums up
check:
	@deploy/deps.sh build test model abi
	@tests/preflight.py
	@rm -rf build/results
	@$(PYTHON) tests/check.py day --first $(FIRST) --waiting $(WAITING) --busy $(BUSY)

#: check-night     everything else, in parts: NIGHT_SECONDS ends a part between two suites, and what
#:                 passed on this tree is not run again (tests/night.passed)
check-night:
	@deploy/deps.sh build test model abi night
	@tests/preflight.py
	@$(SUBMAKE) everything
	@$(PYTHON) tests/check.py night $(NIGHT)

# A debugger needs more than line numbers, a sanitizer does not; they save a fifth of the compiling.
SANITIZED := SANITIZE=address,undefined BUILD=build/sanitize CFLAGS="-O2 -g1"
in_sanitize = $(1:$(BUILD)/%=build/sanitize/%)

# All that the suites of the day need, so that no two of them build the same at the same time.
check-build:
	@$(RUN) build "gcc: $(SUBMAKE) BUILD=build CC=gcc everything replayers python cpp-tests-day"

check-clang:
	@deploy/deps.sh build test night
	@$(RUN) clang "clang: $(SUBMAKE) BUILD=build/clang CC=$(CLANG) CFLAGS=-O0 everything" \
		$(CLANG_HEADER_FORMS)

check-no-rdma:
	@$(RUN) no-rdma "without rdma-core: tests/no_rdma.sh"

# Tests of WAITING wait for real seconds.
WAITING_TESTS := $(addprefix %/test_,contract_demand contract_env control_socket fabric_tcp \
	verbs_end_to_end)
unit = --jobs 2 --user $(filter-out $(WAITING_TESTS),$(1)) \
	$(addprefix --waiting ,$(filter $(WAITING_TESTS),$(1)))
check-unit:
	@$(SUBMAKE) tests
	@$(RUN) unit $(call unit,$(UNIT_TESTS))

# test_alloc replaces malloc, as the sanitizer does. test_litmus, test_biased and test_section show
# less of the order in which two processors see stores when each store takes longer. test_copy_away
# looks at each instruction.
PLAIN_ONLY := %/test_alloc %/test_litmus %/test_biased %/test_section %/test_copy_away
check-unit-sanitized:
	@$(SUBMAKE) $(SANITIZED) tests
	@$(RUN) unit-sanitized $(call unit,$(filter-out $(PLAIN_ONLY),$(call in_sanitize,$(UNIT_TESTS))))

# The order of two processors' stores a hundred times: what one run in a thousand shows is a fault.
LITMUS := $(BUILD)/tests/unit/test_litmus $(BUILD)/tests/unit/test_section
check-litmus:
	@$(SUBMAKE) $(LITMUS)
	@$(RUN) litmus --user $(foreach test,$(LITMUS),\
		"$(notdir $(test)): sh -c 'for i in \$$(seq 100); do $(test) || exit 1; done'")

# 3,000 fixed schedules, all that ever failed, and the mistakes by their noted seeds.
check-sim:
	@$(SUBMAKE) tests
	@$(RUN) sim --user "schedules: $(SIM) --jobs 2" "failed: $(SIM) --list tests/sim/failed --jobs 2" \
		"mistakes: $(SIM) --mistakes --jobs 2"

# SIM_START repeats a night's random schedules.
SIM_START ?=
check-sim-night:
	@$(SUBMAKE) tests
	@$(SUBMAKE) $(SANITIZED) tests
	@$(RUN) sim-night --user "sanitized: $(call in_sanitize,$(SIM)) --jobs 2" \
		"night: $(SIM) --night 100000 $(addprefix --start ,$(SIM_START))" \
		"mistakes: $(SIM) --mistakes --anew --jobs 2"

# Owners that recover on demand are killed; the drill prints how many of them fell while memory was
# missing.
KILLS := env PERSEAS_DEMAND_KILLS=500 $(PYTHON) -m pytest -q -s -p no:cacheprovider \
	tests/drills/test_demand.py -k are_killed
#: kills           500 kills in a row of owners that recover on demand, over tcp and over shm
kills:
	@$(SUBMAKE) all $(TELLER)
	@$(KILLS)

# The three parts that take SOAK_SECONDS come first, and the others follow each other beside them.
SOAK_SECONDS ?= 1800
SOAK_START ?=
#: soak            SOAK_SECONDS (1800) of torture on random stores, of random schedules (SOAK_START
#:                 repeats them) and of false alarms, all at once; and 500 storms and kills, a heap
#:                 at random, and a queue that is killed at 1000 points of a step
soak:
	@$(SUBMAKE) all tests $(TELLER)
	@$(RUN) soak --quiet 7200 --jobs 4 \
		"torture: env PERSEAS_TORTURE=$(SOAK_SECONDS) $(PYTHON) -m pytest -q \
			-p no:cacheprovider tests/drills/test_torture.py" \
		"schedules: $(SIM) --night 1000000000 --seconds $(SOAK_SECONDS) --jobs 1 \
			$(addprefix --start ,$(SOAK_START))" \
		"false alarms: bench/alarms.py --build $(BUILD) --seconds $(SOAK_SECONDS)" \
		"storm: env PERSEAS_STORM=500 $(PYTHON) -m pytest -q -p no:cacheprovider \
			tests/drills/test_storm.py" \
		"kills on demand: $(KILLS)" \
		"heap at random: $(BUILD)/tests/unit/test_heap_random 1 5000" \
		"queue: env PERSEAS_QUEUE_KILLS=1000 $(PYTHON) -m pytest -q -p no:cacheprovider \
			tests/drills/test_queue.py"

check-crash:
	@$(SUBMAKE) tests
	@$(RUN) crash --user $(CRASH)

check-crash-sanitized:
	@$(SUBMAKE) $(SANITIZED) tests
	@$(RUN) crash-sanitized --user $(call in_sanitize,$(CRASH))

check-instructions:
	@$(SUBMAKE) all
	@$(RUN) instructions --user "8 bytes over shm: bench/instructions.py --build $(BUILD)"

# CONTRIBUTING.md says which drills belong to root and which to the night. Four workers run them.
# pytest cuts the reason of a failure off where its line ends, and tests/unstable.py reads it.
DRILLS := env COLUMNS=240 $(PYTHON) -m pytest -q -rfEs -p no:cacheprovider
AT_ONCE := -n 4 --dist=loadfile
IN_DAYS := not timing and not night
check-drills:
	@$(SUBMAKE) all $(TELLER)
	@$(RUN) drills --user "drills: env PERSEAS_FABRICS=one $(DRILLS) $(AT_ONCE) tests/drills \
			-m '$(IN_DAYS) and not root'" \
		--root "as root: env PERSEAS_FABRICS=one $(DRILLS) -n 2 --dist=loadfile tests/drills \
			-m '$(IN_DAYS) and root'"

# All of them on every fabric, with random seeds. PERSEAS_SEED repeats what one printed.
check-drills-night: export PERSEAS_SEED ?= random
check-drills-night:
	@deploy/deps.sh build test night
	@$(SUBMAKE) all $(TELLER) python
	@$(RUN) drills-night --user "drills: $(DRILLS) $(AT_ONCE) tests/drills \
			-m 'not timing and not root'" \
		--root "as root: $(DRILLS) tests/drills -m 'not timing and root'"

# Wall-clock time, with nothing else running.
check-timing:
	@deploy/deps.sh build test night
	@$(SUBMAKE) all $(TELLER) python
	@$(RUN) timing --user "drills: $(DRILLS) tests/drills -m 'timing and not root'" \
		--root "as root: $(DRILLS) tests/drills -m 'timing and root'"

# What is installed, and that uninstall leaves nothing; from the tree's own build.
check-install:
	@$(RUN) install "files: tests/install.sh"

# The same and all unit tests, with the tarball alone.
check-tarball:
	@$(RUN) tarball "tarball: tests/install.sh tarball"

# Each entry of tests/unstable for half an hour under load.
check-unstable:
	@$(SUBMAKE) all $(TELLER)
	@$(RUN) unstable "listed drills: tests/unstable.py"

# The day's check on machines that lack something; tests/anywhere.sh says what.
check-anywhere:
	@$(RUN) anywhere --quiet 3600 $(foreach kind,container nobody,"$(kind): tests/anywhere.sh $(kind)")

# Which lines and branches the tests reach. What ends by kill -9 leaves no counts.
COVERED := build/coverage/build
COUNTING := CC=gcc BUILD=$(COVERED) CFLAGS="-O1 -g --coverage -fprofile-update=atomic"
COVERED_DRILLS ?= tests/drills
LCOV := lcov --quiet --rc lcov_branch_coverage=1

#: coverage        lines and branches that the tests reach, in build/coverage/index.html
coverage:
	@deploy/deps.sh build test coverage
	@$(SUBMAKE) $(COUNTING) all tests
	@find $(COVERED) -name '*.gcda' -delete
	@$(RUN) coverage --jobs 2 $(UNIT_TESTS:$(BUILD)/%=$(COVERED)/%) \
		"sim: $(COVERED)/tests/sim/sim --full 1..400" "crash: $(COVERED)/tests/crash/crash" \
		"drills: env PERSEAS_COVERAGE=1 PERSEAS_BUILD=$(abspath $(COVERED)) $(PYTHON) -m pytest -q \
			-p no:cacheprovider $(COVERED_DRILLS)" || :
	@: Perl warns of lcov itself
	@$(LCOV) --capture --directory $(COVERED)/obj --output-file build/coverage/all.info \
		2>build/coverage/log || { cat build/coverage/log; exit 1; }
	@$(LCOV) --extract build/coverage/all.info --output-file build/coverage/own.info \
		'$(CURDIR)/proto/*' '$(CURDIR)/client/*' '$(CURDIR)/server/*'
	@genhtml --quiet --branch-coverage --prefix '$(CURDIR)' --output-directory build/coverage \
		build/coverage/own.info
	@$(PYTHON) tests/coverage.py build/coverage/own.info
	@echo build/coverage/index.html
