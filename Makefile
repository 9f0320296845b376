# Perseas: the daemon perseasd, the library libperseas, the command perseas.
#
#   make             build into build/
#   make demo        a bank that is killed while it commits, and what is left of it
#   make check       all tests
#   make help        the other targets
#
# Variables: CC, CFLAGS, LDFLAGS, PREFIX, DESTDIR, BUILD (folder of the objects), V=1 (show
# the commands), WERROR= (warnings do not stop the build), SANITIZE=address,undefined, RDMA=0
# (without rdma-core: no rdma fabric); of install and uninstall also BINDIR, SBINDIR, LIBDIR,
# INCLUDEDIR, DOCDIR, SYSCONFDIR, UNITDIR, SYSUSERSDIR, TMPFILESDIR.

VERSION := $(shell cat VERSION)
SOVERSION := 0

ifeq ($(origin CC),default)
CC := gcc
endif
CLANG ?= clang-14
CLANG_TIDY ?= clang-tidy-14
CLANG_FORMAT ?= clang-format-14
PROTOC_C ?= protoc-c
PYTHON ?= /usr/bin/python3

PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
SBINDIR ?= $(PREFIX)/sbin
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
BASHCOMPDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHCOMPDIR ?= $(PREFIX)/share/zsh/site-functions
DOCDIR ?= $(PREFIX)/share/doc/perseas
SYSCONFDIR ?= /etc
UNITDIR ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d

SANITIZE ?=
RDMA ?= 1
BUILD ?= build$(if $(SANITIZE),/sanitize)
Q := $(if $(V),,@)
SUBMAKE := $(MAKE) --no-print-directory -s -j2

# --- flags -------------------------------------------------------------------------------

CFLAGS ?= -O2 -g
WERROR ?= -Werror
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wwrite-strings -Wvla $(WERROR)
SANITIZE_FLAGS := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all \
	-fno-omit-frame-pointer)

# One set of objects serves the shared library, the archive and the programs. The library's
# own calls must not go through its export table: -fno-semantic-interposition.
BASE_CFLAGS := -std=gnu11 -D_GNU_SOURCE -DPERSEAS_VERSION='"$(VERSION)"' -pthread -fPIC \
	-fno-semantic-interposition -DPERSEAS_RDMA=$(RDMA) -I$(BUILD)/proto -Iproto $(SANITIZE_FLAGS)
COMPILE = $(CC) $(BASE_CFLAGS) $(CFLAGS) -MMD -MP -c
LINK = $(CC) -pthread $(SANITIZE_FLAGS) $(CFLAGS) $(LDFLAGS)

VERBS_LIBS := $(if $(filter 1,$(RDMA)),-lrdmacm -libverbs)
TLS_LIBS := -lssl -lcrypto
CLIENT_LIBS := $(VERBS_LIBS) $(TLS_LIBS) -lprotobuf-c -lpthread
SERVER_LIBS := $(VERBS_LIBS) $(TLS_LIBS) -levent -lprotobuf-c -lpthread

# --- what there is to build --------------------------------------------------------------

# Only files whose names say verbs need rdma-core.
sources = $(filter-out $(if $(filter 0,$(RDMA)),$(foreach f,$(wildcard $(1)),$(if \
	$(findstring verbs,$(f)),$(f)))),$(wildcard $(1)))
objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(call sources,$(1)))

PROTO_OBJ := $(BUILD)/obj/control.pb-c.o $(call objects,proto/*.c)
CLIENT_OBJ := $(call objects,client/*.c)
COMMAND_OBJ := $(call objects,client/command/*.c)
SERVER_MAIN_OBJ := $(call objects,server/main.c)
SERVER_OBJ := $(filter-out $(SERVER_MAIN_OBJ),$(call objects,server/*.c)) $(BUILD)/obj/page.o
SUPPORT_OBJ := $(call objects,tests/support/*.c)
SIM_OBJ := $(call objects,tests/sim/*.c)
CRASH_OBJ := $(call objects,tests/crash/*.c)
DRILL_OBJ := $(call objects,tests/drills/*.c)
BENCH_MAINS := debit_credit synthetic pingpong reopen worker limits_verbs compare \
	threads host_limits relay
RAW_OBJ := $(call objects,bench/raw_*verbs.c)
# The command measures too.
HISTOGRAM_OBJ := $(BUILD)/obj/client/command/histogram.o $(BUILD)/obj/proto/log_linear.o
BENCH_OBJ := $(HISTOGRAM_OBJ) $(filter-out $(RAW_OBJ) $(BENCH_MAINS:%=$(BUILD)/obj/bench/%.o),$(call \
	objects,bench/*.c))
# The drivers of other transaction systems need those systems: PEERS=0 leaves them out.
PEERS ?= 1
PEERS_OBJ := $(if $(filter 1,$(PEERS)),$(call objects,bench/peers/*.c))
PEERS_LIBS := $(if $(PEERS_OBJ),-llmdb -lsqlite3 -ldb-5.3 -lhiredis)

DAEMON := $(if $(SERVER_MAIN_OBJ),$(BUILD)/perseasd)
COMMAND := $(if $(COMMAND_OBJ),$(BUILD)/perseas)
SHARED := $(BUILD)/libperseas.so.$(VERSION)
ARCHIVE := $(BUILD)/libperseas.a
PKGCONFIG := $(BUILD)/perseas.pc
UNIT := $(BUILD)/deploy/perseasd.service

UNIT_TESTS := $(patsubst %.c,$(BUILD)/%,$(call sources,tests/unit/test_*.c))
SIM := $(if $(SIM_OBJ),$(BUILD)/tests/sim/sim)
CRASH := $(if $(CRASH_OBJ),$(BUILD)/tests/crash/crash)
INTRUDER := $(patsubst %_verbs.c,$(BUILD)/%,$(call sources,tests/rdma/intruder_verbs.c))
WRITER := $(patsubst %_verbs.c,$(BUILD)/%,$(call sources,tests/rdma/writer_verbs.c))
TELLER := $(if $(DRILL_OBJ),$(BUILD)/tests/drills/teller)
FUZZ_TARGETS := $(patsubst %.c,$(BUILD)/%,$(call sources,tests/fuzz/fuzz_*.c))
FUZZ_TOOLS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/make_*.c))
BENCHES := $(addprefix $(BUILD)/bench/,debit-credit synthetic pingpong reopen worker threads \
	host-limits relay $(if $(RAW_OBJ),limits))

# Everything of ours in one archive, for tests to take what they need from.
TEST_ARCHIVE := $(BUILD)/libtest.a

.PHONY: all programs benches benches-peers tests unit-tests fuzzers everything
.PHONY: always
.DELETE_ON_ERROR:
.SECONDARY:

all: programs benches
programs: $(DAEMON) $(COMMAND) $(SHARED) $(ARCHIVE) $(PKGCONFIG)
benches: $(BENCHES)
benches-peers: $(BUILD)/bench/compare
tests: $(UNIT_TESTS) $(SIM) $(CRASH) $(TELLER) $(INTRUDER) $(FUZZ_TOOLS)
unit-tests: $(UNIT_TESTS)
fuzzers: $(FUZZ_TARGETS)
everything: programs benches tests
always:

# --- compiling ---------------------------------------------------------------------------

PB := $(BUILD)/proto/control.pb-c

$(PB).c $(PB).h &: proto/control.proto
	@mkdir -p $(@D)
	@echo "  PROTOC  $<"
	$(Q)$(PROTOC_C) --proto_path=proto --c_out=$(BUILD)/proto $<

# The status page, as an array of its bytes.
$(BUILD)/page.c: server/page.html Makefile
	@mkdir -p $(@D)
	@echo "  EMBED   $<"
	$(Q){ echo '#include "server/page.h"'; echo 'const unsigned char page_html[] = {'; \
		od -An -v -tx1 $< | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g'; \
		echo '};'; echo 'const unsigned long page_html_size = sizeof(page_html);'; } >$@

$(BUILD)/obj/page.o: $(BUILD)/page.c server/page.h
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(COMPILE) -I. $(WARNINGS) -o $@ $<

# What everything is compiled with: another RDMA compiles it anew.
$(BUILD)/flags: always
	@mkdir -p $(@D)
	@echo 'RDMA=$(RDMA)' | cmp -s - $@ || echo 'RDMA=$(RDMA)' >$@

# Generated code is compiled as it comes.
$(BUILD)/obj/control.pb-c.o: $(PB).c Makefile
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(COMPILE) -w -o $@ $<

$(BUILD)/obj/%.o: %.c Makefile VERSION $(BUILD)/flags | $(PB).h
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(COMPILE) $(WARNINGS) -o $@ $<

-include $(patsubst %.c,$(BUILD)/obj/%.d,$(wildcard $(addsuffix /*.c,proto client client/command \
	server bench bench/peers tests/support tests/unit tests/sim tests/crash tests/drills \
	tests/rdma tests/fuzz)))

# --- linking -----------------------------------------------------------------------------

define archive
@mkdir -p $(@D)
@echo "  AR      $@"
$(Q)rm -f $@ && $(AR) rcs $@ $^
endef

define link
@mkdir -p $(@D)
@echo "  LINK    $@"
$(Q)$(LINK) -o $@ $^
endef

$(BUILD)/perseasd: $(SERVER_MAIN_OBJ) $(SERVER_OBJ) $(PROTO_OBJ)
	$(link) $(SERVER_LIBS)

$(BUILD)/perseas: $(COMMAND_OBJ) $(ARCHIVE)
	$(link) $(CLIENT_LIBS)

$(ARCHIVE): $(CLIENT_OBJ) $(PROTO_OBJ)
	$(archive)

$(SHARED): $(CLIENT_OBJ) $(PROTO_OBJ) client/perseas.map
	@echo "  LINK    $@"
	$(Q)$(LINK) -shared -o $@ $(filter %.o,$^) -Wl,-soname,libperseas.so.$(SOVERSION) \
		-Wl,--version-script=client/perseas.map $(if $(SANITIZE),,-Wl,-z,defs) $(CLIENT_LIBS)
	$(Q)ln -sf $(@F) $(BUILD)/libperseas.so.$(SOVERSION)
	$(Q)ln -sf libperseas.so.$(SOVERSION) $(BUILD)/libperseas.so

# Both always written anew: PREFIX may be another at `make install`.
$(PKGCONFIG): client/perseas.pc.in always
	@mkdir -p $(@D)
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
		-e 's|@PRIVATE@|$(CLIENT_LIBS)|' \
		$< >$@

$(UNIT): deploy/perseasd.service.in always
	@mkdir -p $(@D)
	$(Q)sed -e 's|@SBINDIR@|$(SBINDIR)|' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|' \
		-e 's|@DOCDIR@|$(DOCDIR)|' $< >$@

$(TEST_ARCHIVE): $(PROTO_OBJ) $(CLIENT_OBJ) $(filter-out %/main.o,$(COMMAND_OBJ)) $(SERVER_OBJ) \
		$(SUPPORT_OBJ) $(BENCH_OBJ)
	$(archive)

$(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o $(TEST_ARCHIVE)
	$(link) -lcmocka $(SERVER_LIBS)

# Where some of the simulator's mistakes are made: tests/sim/mistakes_wrapped.c.
SIM_WRAPPED := ps_mend_forward ps_mirror_read ps_mirror_write ps_quorum_touched ps_rejoin_beside \
	ps_roster_replace

$(BUILD)/tests/sim/sim: $(SIM_OBJ) $(TEST_ARCHIVE)
	$(link) $(SIM_WRAPPED:%=-Wl,--wrap=%) $(SERVER_LIBS)

$(BUILD)/tests/crash/crash: $(CRASH_OBJ) $(TEST_ARCHIVE)
	$(link) $(SERVER_LIBS)

$(BUILD)/tests/drills/teller: $(DRILL_OBJ) $(ARCHIVE)
	$(link) $(CLIENT_LIBS)

$(BUILD)/tests/rdma/intruder: $(BUILD)/obj/tests/rdma/intruder_verbs.o
	$(link) $(VERBS_LIBS)

$(BUILD)/tests/rdma/writer: $(BUILD)/obj/tests/rdma/writer_verbs.o
	$(link) $(VERBS_LIBS)

# Built with CC=clang SANITIZE=fuzzer-no-link,…; libFuzzer brings main.
$(BUILD)/tests/fuzz/fuzz_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(TEST_ARCHIVE)
	$(link) -fsanitize=fuzzer -lcmocka $(SERVER_LIBS)

$(BUILD)/tests/fuzz/make_%: $(BUILD)/obj/tests/fuzz/make_%.o $(TEST_ARCHIVE)
	$(link) $(SERVER_LIBS)

$(BUILD)/bench/debit-credit: $(BUILD)/obj/bench/debit_credit.o $(BENCH_OBJ) $(ARCHIVE)
	$(link) $(CLIENT_LIBS)

$(BUILD)/bench/compare: $(BUILD)/obj/bench/compare.o $(BENCH_OBJ) $(PEERS_OBJ) $(ARCHIVE)
	$(link) $(PEERS_LIBS) $(CLIENT_LIBS)

$(BUILD)/bench/synthetic: $(BUILD)/obj/bench/synthetic.o $(BENCH_OBJ) $(ARCHIVE)
	$(link) $(CLIENT_LIBS)

$(BUILD)/bench/reopen: $(addprefix $(BUILD)/obj/bench/,reopen.o options.o fabric.o \
		measure.o) $(HISTOGRAM_OBJ) $(ARCHIVE)
	$(link) $(CLIENT_LIBS)

$(BUILD)/bench/worker: $(addprefix $(BUILD)/obj/bench/,worker.o options.o fabric.o) $(ARCHIVE)
	$(link) $(CLIENT_LIBS)

$(BUILD)/bench/threads: $(BUILD)/obj/bench/threads.o $(BENCH_OBJ) $(ARCHIVE)
	$(link) $(CLIENT_LIBS)

$(BUILD)/bench/host-limits: $(addprefix $(BUILD)/obj/bench/,host_limits.o pinger.o measure.o \
		options.o) $(HISTOGRAM_OBJ)
	$(link)

$(BUILD)/bench/relay: $(addprefix $(BUILD)/obj/bench/,relay.o options.o)
	$(link)

$(BUILD)/bench/limits: $(addprefix $(BUILD)/obj/bench/,limits_verbs.o pinger.o measure.o \
		options.o) $(HISTOGRAM_OBJ) $(RAW_OBJ)
	$(link) $(VERBS_LIBS)

$(BUILD)/bench/pingpong: $(addprefix $(BUILD)/obj/bench/,pingpong.o pinger.o measure.o \
		options.o) $(HISTOGRAM_OBJ)
	$(link)

# --- the demo and the benchmarks ---------------------------------------------------------

.PHONY: demo bench bench-quick bench-failover bench-failover-rdma bench-resync bench-rdma

demo:
	@deploy/deps.sh build
	@$(SUBMAKE) all
	@$(PYTHON) bench/demo.py --build $(BUILD)

bench bench-quick:
	@deploy/deps.sh build bench
	$(if $(findstring quick,$@),,@$(MAKE) --no-print-directory check-peers)
	@$(SUBMAKE) all benches-peers
	@$(PYTHON) bench/run.py --build $(BUILD) $(if $(findstring quick,$@),--quick)
	@$(PYTHON) bench/figures.py $(BUILD)/bench/results.json

bench-failover: all
	@$(PYTHON) bench/failover.py --build $(BUILD)

bench-resync: all
	@$(PYTHON) bench/resync.py --build $(BUILD)

# In a virtual machine with soft-RoCE: ratios to the bare fabric.
RDMA_BENCH := build/bench-rdma
bench-rdma:
	@deploy/deps.sh build rdma-test
	@$(SUBMAKE) all
	@mkdir -p $(RDMA_BENCH)
	@tests/rdma/rig.py run --steady --nodes 4 --timeout 1800 --see $(BUILD) --output $(RDMA_BENCH) -- \
		$(PYTHON) bench/run_rdma.py --build $(BUILD) --output $(abspath $(RDMA_BENCH))/results.json
	@cp $(RDMA_BENCH)/results.json build/bench-rdma.json
	@echo build/bench-rdma.json

RDMA_FAILOVER := build/bench-failover-rdma
bench-failover-rdma:
	@deploy/deps.sh build rdma-test
	@$(SUBMAKE) all
	@mkdir -p $(RDMA_FAILOVER)
	@tests/rdma/rig.py run --steady --nodes 4 --memory 4G --timeout 3600 --see $(BUILD) \
		--output $(RDMA_FAILOVER) -- $(PYTHON) bench/failover.py --build $(BUILD) \
		--output $(abspath $(RDMA_FAILOVER))/failover.json

# --- tests -------------------------------------------------------------------------------
#
# Every suite runs through tests/run.py, which keeps logs and counts in build/results, and where root
# calls has an ordinary user do what is marked --user.

.PHONY: check check-beside check-headers check-unit check-sim check-crash check-fuzz check-instructions
.PHONY: check-drills check-build check-clang check-install check-style check-rdma check-rdma-drills check-rdma-siw

ALONE := build headers style unit instructions drills
# The virtual machines of rdma leave most of one processor free. What runs beside them measures no
# time, and gives way.
LAST := rdma install
BESIDE := sim clang lint model crash fuzz
SUITES := $(ALONE) $(LAST) $(BESIDE)
each = for suite in $(1); do \
		$(MAKE) --no-print-directory check-$$suite || $(RUN) --broken $$suite; \
	done
FUZZ_SECONDS ?= 4
SANITIZED := SANITIZE=address,undefined BUILD=build/sanitize
FUZZING := CC=$(CLANG) SANITIZE=fuzzer-no-link,address,undefined BUILD=build/fuzz
RUN := $(PYTHON) tests/run.py

check:
	@deploy/deps.sh build test model rdma-test
	@rm -rf build/results
	@$(call each,$(ALONE))
	@nice -n 15 $(MAKE) --no-print-directory check-beside & beside=$$!; \
		trap 'kill $$beside; exit 130' INT TERM; \
		$(call each,$(LAST)); wait $$beside || :
	@: one that was never reached has failed, too
	@for suite in $(SUITES); do $(RUN) --broken $$suite; done
	@$(RUN) --sum

check-beside:
	@$(call each,$(BESIDE))

check-build:
	@$(RUN) build --timeout 300 "gcc: $(SUBMAKE) BUILD=build CC=gcc everything" \
		"without rdma-core: tests/no_rdma.sh"

check-clang:
	@$(RUN) clang --timeout 900 "clang: $(SUBMAKE) BUILD=build/clang CC=$(CLANG) CFLAGS=-O0 everything"

# The public header needs nothing before it, in C and in C++.
HEADER_FLAGS := -fsyntax-only -Wall -Wextra -Werror -pedantic
check-headers:
	@$(RUN) headers "gcc C11: $(CC) -std=c11 $(HEADER_FLAGS) -x c client/perseas.h" \
		"gcc C99: $(CC) -std=c99 $(HEADER_FLAGS) -x c client/perseas.h" \
		"clang C11: $(CLANG) -std=c11 $(HEADER_FLAGS) -x c client/perseas.h" \
		"clang C++11: $(CLANG) -std=c++11 $(HEADER_FLAGS) -x c++ client/perseas.h"

check-style:
	@$(RUN) style "style: $(PYTHON) tests/style.py"

# What two tools say of the code that users run; .clang-tidy and tests/cppcheck.txt say what they are
# not asked, and why. A file that passed is looked at again when it was compiled again. The analyzer
# of clang-tidy takes seconds a file, so it leaves those of TIDY_LIGHTLY to cppcheck's; `make tidy
# TIDY_LIGHTLY=` has it look at these as well.
TIDY_LIGHTLY ?= client/command/%
TIDIED := $(patsubst %.c,$(BUILD)/lint/%.ok,$(call sources,$(addsuffix /*.c,proto client \
	client/command server)))
.PHONY: check-lint tidy cppcheck
$(BUILD)/lint/%.ok: $(BUILD)/obj/%.o .clang-tidy
	@mkdir -p $(@D)
	@echo "  TIDY    $*.c"
	$(Q)$(CLANG_TIDY) --quiet $(if $(filter $(TIDY_LIGHTLY),$*),--checks=-clang-analyzer-*) \
		$*.c -- $(BASE_CFLAGS) >$@.log 2>&1 || { cat $@.log; exit 1; }
	$(Q)touch $@

tidy: $(TIDIED)

cppcheck: $(PB).h
	@mkdir -p $(BUILD)/lint/cppcheck
	$(Q)cppcheck -q -j2 --std=c11 --enable=warning,performance,portability --error-exitcode=1 \
		--library=posix --cppcheck-build-dir=$(BUILD)/lint/cppcheck \
		--suppressions-list=tests/cppcheck.txt -D_GNU_SOURCE -DPERSEAS_RDMA=1 \
		-DPROTOBUF_C_VERSION_NUMBER=9999999 -DPROTOBUF_C_MIN_COMPILER_VERSION=0 \
		-DPERSEAS_VERSION='"$(VERSION)"' -I$(BUILD)/proto -Iproto proto client server

# Lays out all that is C, or says where it is laid out otherwise.
LAID_OUT := $(foreach dir,bench client doc proto server tests,$(shell find $(dir) -name '*.[ch]'))
.PHONY: format check-format
format:
	@deploy/deps.sh format
	$(Q)$(CLANG_FORMAT) -i $(LAID_OUT)

check-format:
	$(Q)$(CLANG_FORMAT) --dry-run -Werror $(LAID_OUT)

check-lint:
	@$(RUN) lint --timeout 900 "clang-format: $(SUBMAKE) check-format" \
		"clang-tidy: $(SUBMAKE) -k tidy" "cppcheck: $(SUBMAKE) cppcheck"

# test_alloc puts its own malloc in the place that the sanitizer takes: plain only.
check-unit:
	@$(SUBMAKE) tests
	@$(SUBMAKE) $(SANITIZED) tests
	@$(RUN) unit --timeout 120 --jobs 2 --user $(UNIT_TESTS) \
		$(filter-out %/test_alloc,$(UNIT_TESTS:$(BUILD)/%=build/sanitize/%))

check-sim:
	@$(SUBMAKE) tests
	@$(SUBMAKE) $(SANITIZED) tests
	@$(RUN) sim --timeout 1800 --jobs 2 --user "sim 1..10000: $(SIM) --full 1..10000" \
		"sim 10001..20000: $(SIM) --full 10001..20000" "sim mistakes: $(SIM) --mistakes" \
		$(SIM:$(BUILD)/%=build/sanitize/%)

# What takes a night: more schedules and more kills in a row than check runs.
.PHONY: soak
soak:
	@$(SUBMAKE) all tests
	@$(RUN) soak --timeout 7200 --jobs 2 "sim 1..50000: $(SIM) --full 1..50000" \
		"sim 50001..100000: $(SIM) --full 50001..100000" "sim mistakes: $(SIM) --mistakes" \
		"storm: env PERSEAS_STORM=500 $(PYTHON) -m pytest -q -p no:cacheprovider \
			tests/drills/test_storm.py"

check-crash:
	@$(SUBMAKE) tests
	@$(SUBMAKE) $(SANITIZED) tests
	@$(RUN) crash --timeout 900 --jobs 2 --user $(CRASH) $(CRASH:$(BUILD)/%=build/sanitize/%)

check-fuzz:
	@$(SUBMAKE) $(FUZZING) fuzzers
	@$(RUN) fuzz --timeout 300 --jobs 2 $(foreach t,$(FUZZ_TARGETS),\
		"$(notdir $(t)): tests/fuzz/run.sh $(t:$(BUILD)/%=build/fuzz/%) $(FUZZ_SECONDS)")
	@$(PYTHON) tests/fuzz/report.py build/results/fuzz tests/fuzz/corpus

# Writes the seeds anew, after a change of a format: those that encoders make, and those that are
# recorded from sessions of real daemons.
.PHONY: corpus
corpus: all $(FUZZ_TOOLS)
	$(BUILD)/tests/fuzz/make_corpus tests/fuzz/corpus
	$(BUILD)/tests/fuzz/make_control tests/fuzz/corpus
	$(BUILD)/tests/fuzz/make_top tests/fuzz/corpus
	@$(SUBMAKE) $(FUZZING) fuzzers
	@PERSEAS_BUILD=$(abspath $(BUILD)) $(PYTHON) tests/fuzz/record.py build/fuzz/tests/fuzz \
		tests/fuzz/corpus

check-instructions:
	@$(SUBMAKE) all
	@$(RUN) instructions --timeout 300 --user "8 bytes over shm: bench/instructions.py --build $(BUILD)"

# CONTRIBUTING.md says what is root's.
DRILLS := $(PYTHON) -m pytest -q -rs -p no:cacheprovider tests/drills
check-drills:
	@$(SUBMAKE) all $(TELLER)
	@$(RUN) drills --timeout 1200 --user "drills: $(DRILLS) -m 'not root'" \
		--root "as root: $(DRILLS) -m root"

# In virtual machines, on soft-RoCE: first what the other tests of the suite rely on.
IN_GUEST := $(PYTHON) -m pytest -v --durations=12 -o faulthandler_timeout=300 -p no:cacheprovider
# The drills in which the data path matters; check-rdma-drills runs all that know of fabrics.
ON_RDMA := tests/drills/test_mirror.py tests/drills/test_zombie.py \
	tests/drills/test_access.py::test_what_is_denied_leaves_everything_as_it_is
check-rdma:
	@deploy/deps.sh build rdma-test
	@$(SUBMAKE) all $(TELLER) $(INTRUDER) $(WRITER)
	@tests/rdma/kernel.py >/dev/null
	@$(RUN) rdma --timeout 900 \
		"machines: $(PYTHON) -m pytest -v --durations=12 -p no:cacheprovider tests/rdma \
			--ignore tests/rdma/guest" \
		"guest: tests/rdma/rig.py run --nodes 4 --timeout 880 -- $(IN_GUEST) tests/rdma/guest" \
		"drills: tests/rdma/rig.py run --nodes 4 --timeout 880 -- $(IN_GUEST) $(ON_RDMA) -k rdma"

check-rdma-drills:
	@deploy/deps.sh build rdma-test
	@$(SUBMAKE) all $(TELLER)
	@tests/rdma/kernel.py >/dev/null
	@$(RUN) rdma-drills --timeout 1800 "drills: tests/rdma/rig.py run --nodes 4 --timeout 1780 \
		-- $(IN_GUEST) tests/drills -k 'rdma and not route'"

# The nodes on the other software device, iWARP's. Not in SUITES: it fetches the kernel's source.
check-rdma-siw:
	@deploy/deps.sh build rdma-test
	@$(SUBMAKE) all $(TELLER) $(WRITER)
	@tests/rdma/siw.sh >/dev/null
	@$(RUN) rdma-siw --timeout 300 "guest: tests/rdma/rig.py run --provider siw --nodes 4 \
		--timeout 280 -- $(IN_GUEST) tests/rdma/guest/test_nodes.py tests/rdma/guest/test_smoke.py \
		-m 'not rxe'"

# The service under systemd, in a machine. Not in SUITES: drills show most of it in less time.
.PHONY: check-service
SERVICE_PREFIX := /run/perseas-installed
check-service:
	@deploy/deps.sh build test rdma-test
	@$(SUBMAKE) all
	@$(SUBMAKE) PREFIX=$(SERVICE_PREFIX) DESTDIR=$(abspath build/service) install
	@$(SUBMAKE) BUILD=build/next VERSION=$(VERSION)+next build/next/perseasd
	@tests/rdma/kernel.py >/dev/null
	@$(RUN) service --timeout 600 "systemd: tests/rdma/rig.py run --nodes 4 --timeout 580 -- \
		tests/rdma/service.sh $(abspath build/service) $(SERVICE_PREFIX) $(abspath $(BUILD)) \
		$(abspath build/next)/perseasd"

# The rules, in Promela: every state of small stores, and mistakes that must be found.
MODEL := nice -n 15 $(PYTHON) proto/model/check.py
.PHONY: model model-quick check-model
model:
	@deploy/deps.sh model
	@$(MODEL) --jobs 2

model-quick:
	@deploy/deps.sh model
	@$(MODEL) --jobs 2 --quick

check-model:
	@$(RUN) model --timeout 900 "model: $(MAKE) --no-print-directory model-quick"

# The tarball is built, tested and installed by itself, and a program compiles against what it
# installed.
check-install:
	@$(RUN) install --timeout 600 tests/install.sh

# --- coverage ----------------------------------------------------------------------------
#
# Which lines and branches the tests reach. What ends by kill -9 leaves no counts.

.PHONY: coverage
COVERED := build/coverage/build
COUNTING := CC=gcc BUILD=$(COVERED) CFLAGS="-O1 -g --coverage -fprofile-update=atomic"
COVERED_DRILLS ?= tests/drills
LCOV := lcov --quiet --rc lcov_branch_coverage=1

coverage:
	@deploy/deps.sh build test coverage
	@$(SUBMAKE) $(COUNTING) all tests
	@find $(COVERED) -name '*.gcda' -delete
	@$(RUN) coverage --timeout 900 --jobs 2 $(UNIT_TESTS:$(BUILD)/%=$(COVERED)/%) \
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

# --- peers -------------------------------------------------------------------------------
#
# The transaction systems that bench compares with, each tested for what it is measured for.

.PHONY: check-peers
$(BUILD)/tests/peers/test_peers: $(BUILD)/obj/tests/peers/test_peers.o $(PEERS_OBJ) $(TEST_ARCHIVE)
	$(link) -lcmocka $(PEERS_LIBS) $(SERVER_LIBS)

check-peers:
	@deploy/deps.sh build bench
	@$(SUBMAKE) $(BUILD)/tests/peers/test_peers
	@$(RUN) peers --timeout 300 \
		"peers: bench/peers/redis_pair.py -- $(abspath $(BUILD))/tests/peers/test_peers" \
		"pair: $(PYTHON) -m pytest -q -p no:cacheprovider tests/peers"

-include $(BUILD)/obj/tests/peers/test_peers.d

# --- installing and packing --------------------------------------------------------------

.PHONY: install uninstall man dist clean help

# The manual pages, from what programs and header say of themselves.
MAN := $(BUILD)/man
man: $(MAN)/made
$(MAN)/made: deploy/man.py client/perseas.h deploy/perseas-rxe VERSION $(COMMAND) $(DAEMON)
	@echo "  MAN     $(MAN)"
	$(Q)rm -rf $(MAN) && $(PYTHON) deploy/man.py --build $(BUILD) --output $(MAN) && touch $@

# What goes where, by its name in the tree. The administrator's own $(SYSCONFDIR)/perseasd.conf,
# and what lies in memory or on disk, is none of it.
SBIN_FILES := $(DAEMON) deploy/perseas-rxe deploy/nut/perseas-power
DOC_FILES := README.md CHANGELOG.md LICENSE SECURITY.md $(wildcard doc/*.md) deploy/access.md \
	deploy/power.md deploy/roce.md deploy/grafana.json deploy/perseasd.conf
LIB_NAMES := libperseas.so.$(VERSION) libperseas.so.$(SOVERSION) libperseas.so libperseas.a \
	pkgconfig/perseas.pc

install: programs man $(UNIT)
	install -d $(addprefix $(DESTDIR),$(BINDIR) $(SBINDIR) $(INCLUDEDIR) $(LIBDIR)/pkgconfig \
		$(DOCDIR) $(UNITDIR) $(SYSUSERSDIR) $(TMPFILESDIR))
	install -m 755 $(COMMAND) $(DESTDIR)$(BINDIR)/
	install -m 755 $(SBIN_FILES) $(DESTDIR)$(SBINDIR)/
	install -m 755 $(SHARED) $(DESTDIR)$(LIBDIR)/
	ln -sf libperseas.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libperseas.so.$(SOVERSION)
	ln -sf libperseas.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libperseas.so
	install -m 644 $(ARCHIVE) $(DESTDIR)$(LIBDIR)/
	install -m 644 $(PKGCONFIG) $(DESTDIR)$(LIBDIR)/pkgconfig/
	install -m 644 client/perseas.h $(DESTDIR)$(INCLUDEDIR)/
	cd $(MAN) && for page in man?/*; do \
		install -D -m 644 $$page $(abspath $(DESTDIR)$(MANDIR))/$$page || exit 1; done
	install -d $(DESTDIR)$(BASHCOMPDIR) $(DESTDIR)$(ZSHCOMPDIR)
	$(COMMAND) completion bash >$(DESTDIR)$(BASHCOMPDIR)/perseas
	$(COMMAND) completion zsh >$(DESTDIR)$(ZSHCOMPDIR)/_perseas
	install -m 644 $(DOC_FILES) $(DESTDIR)$(DOCDIR)/
	install -m 644 $(UNIT) deploy/perseasd.socket $(DESTDIR)$(UNITDIR)/
	install -m 644 deploy/perseas.sysusers $(DESTDIR)$(SYSUSERSDIR)/perseas.conf
	install -m 644 deploy/perseas.tmpfiles $(DESTDIR)$(TMPFILESDIR)/perseas.conf

uninstall:
	rm -f $(DESTDIR)$(BINDIR)/perseas
	rm -f $(addprefix $(DESTDIR)$(SBINDIR)/,$(notdir $(SBIN_FILES)))
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/,$(LIB_NAMES))
	rm -f $(DESTDIR)$(INCLUDEDIR)/perseas.h
	rm -f $(addprefix $(DESTDIR)$(MANDIR)/,man1/perseas.1 man1/perseas-*.1 man3/libperseas.3 \
		man3/perseas_*.3 man5/perseasd.conf.5 man8/perseasd.8 man8/perseas-rxe.8)
	rm -f $(DESTDIR)$(BASHCOMPDIR)/perseas $(DESTDIR)$(ZSHCOMPDIR)/_perseas
	rm -f $(addprefix $(DESTDIR)$(DOCDIR)/,$(notdir $(DOC_FILES)))
	rm -f $(addprefix $(DESTDIR)$(UNITDIR)/,perseasd.service perseasd.socket)
	rm -f $(DESTDIR)$(SYSUSERSDIR)/perseas.conf $(DESTDIR)$(TMPFILESDIR)/perseas.conf
	[ ! -d $(DESTDIR)$(DOCDIR) ] || rmdir --ignore-fail-on-non-empty $(DESTDIR)$(DOCDIR)

# What git knows of, as it lies in the tree.
dist:
	@mkdir -p build
	git ls-files | tar -czf build/perseas-$(VERSION).tar.gz --owner=0 --group=0 \
		--transform 's|^|perseas-$(VERSION)/|' -T -
	@echo build/perseas-$(VERSION).tar.gz

clean:
	rm -rf build

help:
	@sed -n '/^$$/q; s/^# \{0,1\}//p' Makefile
	@echo
	@echo "Targets:"
	@echo "  all             daemon, library, command, benchmarks"
	@echo "  demo            kill an owner and a mirror, recover, check (about 15 s)"
	@echo "  check           every suite below; the last line sums up"
	@echo "  $(addprefix check-,$(SUITES))"
	@echo "  coverage        lines and branches that the tests reach, in build/coverage/index.html"
	@echo "  format          lays out all that is C by clang-format; check-lint sees whether it is"
	@echo "  soak            100,000 simulated schedules, 500 kills in a row on each fabric (an hour)"
	@echo "  model           checks the rules, all of them (minutes); model-quick: within a minute"
	@echo "  check-peers     the systems that bench compares with do what they are measured for"
	@echo "  check-service   the installed units under systemd, on soft-RoCE, under QEMU"
	@echo "  check-rdma-siw  the soft-RoCE rig on iWARP instead (fetches the kernel's source)"
	@echo "  bench           all measurements, beside other systems; bench-quick: the same, shorter"
	@echo "  bench-failover  from kill -9 of an owner to the first commit of the next"
	@echo "  bench-failover-rdma  the same over soft-RoCE, under QEMU"
	@echo "  bench-resync    what commits notice of a mirror that is copied whole"
	@echo "  bench-rdma      commit and recovery over soft-RoCE against the bare fabric, under QEMU"
	@echo "  man             the manual pages, into $(MAN)"
	@echo "  install uninstall   programs, library, documents, units; DESTDIR, PREFIX ($(PREFIX))"
	@echo "  corpus          writes the seeds of the fuzz targets anew"
	@echo "  dist            build/perseas-$(VERSION).tar.gz"
	@echo "  clean"
