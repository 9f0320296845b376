# Perseas: the daemon perseasd, the library libperseas, the command perseas.
#
#   make             build into build/
#   make demo        a bank that is killed while it commits, and what is left of it
#   make check       the tests of the day (minutes); make check-night has the rest (hours)
#   make help        the other targets
#
# Variables: CC, CPPFLAGS, CFLAGS, LDFLAGS, PREFIX, DESTDIR, BUILD (folder of the objects), V=1 (show
# the commands), WERROR= (warnings do not stop the build), SANITIZE=address,undefined, RDMA=0
# (without rdma-core: no rdma fabric); of install and uninstall also BINDIR, SBINDIR, LIBDIR,
# INCLUDEDIR, MANDIR, BASHCOMPDIR, ZSHCOMPDIR, DOCDIR, SYSCONFDIR, UNITDIR, SYSUSERSDIR, TMPFILESDIR,
# OCFDIR (agents of Pacemaker), PYTHONDIR, and PYTHON_PACKAGE=0 (without the Python package).

VERSION := $(shell cat VERSION)
SOVERSION := 0

ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := g++
endif
CLANG ?= clang-14
CLANGXX ?= clang++-14
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
OCFDIR ?= $(PREFIX)/lib/ocf

SANITIZE ?=
RDMA ?= 1
BUILD ?= build$(if $(SANITIZE),/sanitize)
Q := $(if $(V),,@)
SUBMAKE := $(MAKE) --no-print-directory -s -j2

# --- flags -------------------------------------------------------------------------------

CPPFLAGS ?=
CFLAGS ?= -O2 -g
WERROR ?= -Werror
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wwrite-strings -Wvla $(WERROR)
SANITIZE_FLAGS := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all \
	-fno-omit-frame-pointer)

# What a fault in memory finds in its way: guarded stacks, checked copies (which need an optimiser,
# and say less than a sanitizer), jumps that land where they may, and tables of addresses that are
# read-only once a program has begun. tests/install.sh reads what became of it.
OPTIMISED := $(filter-out -O0,$(filter -O%,$(CFLAGS)))
# Whoever builds a package has said so already, and perhaps more.
FORTIFIED := $(findstring _FORTIFY_SOURCE=,$(CPPFLAGS) $(CFLAGS))
HARDENING := -fstack-protector-strong \
	$(if $(SANITIZE),,$(if $(OPTIMISED),$(if $(FORTIFIED),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))) \
	$(shell echo 'int x;' | $(CC) -fcf-protection -x c -c -o /dev/null - 2>/dev/null && \
		echo -fcf-protection)
HARDENED_LINK := -Wl,-z,relro -Wl,-z,now

# One set of objects serves the shared library, the archive and the programs. The library's
# own calls must not go through its export table: -fno-semantic-interposition.
BASE_CFLAGS := -std=gnu11 -D_GNU_SOURCE -DPERSEAS_VERSION='"$(VERSION)"' -pthread -fPIC \
	-fno-semantic-interposition -DPERSEAS_RDMA=$(RDMA) -I$(BUILD)/proto $(HARDENING) \
	$(SANITIZE_FLAGS)
COMPILE = $(CC) $(BASE_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(UNOPTIMIZED) -MMD -MP -c
# A program that unloads a library leaves its threads, handlers and TLS callbacks behind: they need
# its code until the process ends.
SHARED_LINK := -shared -Wl,-z,nodelete
LINK = $(CC) -pthread $(HARDENED_LINK) $(SANITIZE_FLAGS) $(CFLAGS) $(LDFLAGS)

VERBS_LIBS := $(if $(filter 1,$(RDMA)),-lrdmacm -libverbs)
TLS_LIBS := -lssl -lcrypto
CLIENT_LIBS := $(VERBS_LIBS) $(TLS_LIBS) -lprotobuf-c -lresolv -lpthread
# The command draws by ncurses, which the library does not need.
COMMAND_LIBS := $(CLIENT_LIBS) -lncursesw
SERVER_LIBS := $(VERBS_LIBS) $(TLS_LIBS) -levent -lprotobuf-c -lpthread
# Tests take from both.
TEST_LIBS := $(SERVER_LIBS) -lresolv -lncursesw

# --- what there is to build --------------------------------------------------------------

# Only files whose names say verbs need rdma-core.
sources = $(filter-out $(if $(filter 0,$(RDMA)),$(foreach f,$(wildcard $(1)),$(if \
	$(findstring verbs,$(f)),$(f)))),$(wildcard $(1)))
objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(call sources,$(1)))

# The rooms; tests/style.py says which of them may include which.
FORMATS := $(addprefix proto/,base image data control)
LIBRARY := $(addprefix client/,core host fabric demand keeper open heap standby)
COMMANDS := $(addprefix client/command/,ui ask place fleet live change drain doctor top bench run) client/command
SERVING := $(addprefix server/,host store memory loop fabric watch)
RVM := client/rvm
RDS := client/rds
ROOMS := $(FORMATS) $(LIBRARY) $(RVM) $(RDS) $(COMMANDS) $(SERVING) server

PROTO_OBJ := $(BUILD)/obj/control.pb-c.o $(call objects,$(FORMATS:%=%/*.c))
CLIENT_OBJ := $(call objects,$(LIBRARY:%=%/*.c))
RVM_OBJ := $(call objects,$(RVM)/*.c)
RDS_OBJ := $(call objects,$(RDS)/*.c)
COMMAND_OBJ := $(call objects,$(COMMANDS:%=%/*.c))
COMMAND_OBJ += $(if $(COMMAND_OBJ),$(BUILD)/obj/completion.o)
SERVER_MAIN_OBJ := $(call objects,server/main.c)
SERVER_OBJ := $(call objects,$(SERVING:%=%/*.c)) $(BUILD)/obj/page.o

DAEMON := $(if $(SERVER_MAIN_OBJ),$(BUILD)/perseasd)
COMMAND := $(if $(COMMAND_OBJ),$(BUILD)/perseas)
SHARED := $(BUILD)/libperseas.so.$(VERSION)
ARCHIVE := $(BUILD)/libperseas.a
RVM_SHARED := $(BUILD)/librvm-perseas.so.$(VERSION)
RVM_ARCHIVE := $(BUILD)/librvm-perseas.a
RDS_SHARED := $(BUILD)/librds-perseas.so.$(VERSION)
RDS_ARCHIVE := $(BUILD)/librds-perseas.a
PRIVATE_LIBS := $(BUILD)/libperseas.libs

.PHONY: all programs benches tests everything always clean help
.DELETE_ON_ERROR:
.SECONDARY:

#: all             daemon, library, command, benchmarks
all: programs benches
programs: $(DAEMON) $(COMMAND) $(SHARED) $(ARCHIVE) $(RVM_SHARED) $(RVM_ARCHIVE) $(RDS_SHARED) \
	$(RDS_ARCHIVE) $(PRIVATE_LIBS)
everything: programs benches tests
always:

# --- compiling ---------------------------------------------------------------------------

# Written when everything that is needed to build is there.
NEEDS := $(BUILD)/needs
$(NEEDS): deploy/needs.sh
	@mkdir -p $(@D)
	@CC='$(CC)' PROTOC_C='$(PROTOC_C)' RDMA='$(RDMA)' $< && touch $@

PB := $(BUILD)/proto/control.pb-c

$(PB).c $(PB).h &: proto/control.proto | $(NEEDS)
	@mkdir -p $(@D)
	@echo "  PROTOC  $<"
	$(Q)$(PROTOC_C) --proto_path=proto --c_out=$(BUILD)/proto $<

# The status page, as an array of its bytes.
$(BUILD)/page.c: server/watch/page.html Makefile | $(NEEDS)
	@mkdir -p $(@D)
	@echo "  EMBED   $<"
	$(Q){ echo '#include "server/watch/page.h"'; echo 'const unsigned char page_html[] = {'; \
		od -An -v -tx1 $< | sed 's/ *\([0-9a-f][0-9a-f]\)/0x\1,/g'; \
		echo '};'; echo 'const unsigned long page_html_size = sizeof(page_html);'; } >$@

$(BUILD)/obj/page.o: $(BUILD)/page.c server/watch/page.h
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(COMPILE) -I. $(WARNINGS) -o $@ $<

# The scripts of completion, as texts.
COMPLETION := $(addprefix client/command/completion.,bash zsh)
$(BUILD)/completion.c: $(COMPLETION) Makefile | $(NEEDS)
	@mkdir -p $(@D)
	@echo "  EMBED   $(COMPLETION)"
	$(Q){ echo '#include "client/command/command.h"'; for shell in bash zsh; do \
		echo "const char ps_completion_$$shell[] ="; \
		sed 's/[\\"]/\\&/g; s/.*/"&\\n"/' client/command/completion.$$shell; \
		echo ';'; done; } >$@

$(BUILD)/obj/completion.o: $(BUILD)/completion.c client/command/command.h | $(PB).h
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

-include $(wildcard $(addprefix $(BUILD)/obj/,*/*.d */*/*.d */*/*/*.d))

# --- linking -----------------------------------------------------------------------------

define archive
@mkdir -p $(@D)
@echo "  AR      $@"
$(Q)rm -f $@ && $(AR) rcs $@ $^
endef

define link
@mkdir -p $(@D)
@echo "  LINK    $@"
$(Q)$(LINK) -pie -o $@ $^
endef

$(BUILD)/perseasd: $(SERVER_MAIN_OBJ) $(SERVER_OBJ) $(PROTO_OBJ)
	$(link) $(SERVER_LIBS)

$(BUILD)/perseas: $(COMMAND_OBJ) $(ARCHIVE)
	$(link) $(COMMAND_LIBS)

$(ARCHIVE): $(CLIENT_OBJ) $(PROTO_OBJ)
	$(archive)

$(SHARED): $(CLIENT_OBJ) $(PROTO_OBJ) client/perseas.map
	@echo "  LINK    $@"
	$(Q)$(LINK) $(SHARED_LINK) -o $@ $(filter %.o,$^) -Wl,-soname,libperseas.so.$(SOVERSION) \
		-Wl,--version-script=client/perseas.map $(if $(SANITIZE),,-Wl,-z,defs) $(CLIENT_LIBS)
	$(Q)ln -sf $(@F) $(BUILD)/libperseas.so.$(SOVERSION)
	$(Q)ln -sf libperseas.so.$(SOVERSION) $(BUILD)/libperseas.so

$(RVM_ARCHIVE): $(RVM_OBJ)
	$(archive)

# RVM's interface, which knows of the library only what that exports.
$(RVM_SHARED): $(RVM_OBJ) $(SHARED) client/rvm/rvm.map
	@echo "  LINK    $@"
	$(Q)$(LINK) $(SHARED_LINK) -o $@ $(filter %.o,$^) -Wl,-soname,librvm-perseas.so.$(SOVERSION) \
		-Wl,--version-script=client/rvm/rvm.map $(if $(SANITIZE),,-Wl,-z,defs) \
		-L$(BUILD) -lperseas
	$(Q)ln -sf $(@F) $(BUILD)/librvm-perseas.so.$(SOVERSION)
	$(Q)ln -sf librvm-perseas.so.$(SOVERSION) $(BUILD)/librvm-perseas.so

# RDS and the segment loader know of RVM's interface what its header says, which is found as it is
# where it was installed.
$(RDS_OBJ): BASE_CFLAGS += -I$(RVM)

$(RDS_ARCHIVE): $(RDS_OBJ)
	$(archive)

$(RDS_SHARED): $(RDS_OBJ) $(RVM_SHARED) client/rds/rds.map
	@echo "  LINK    $@"
	$(Q)$(LINK) $(SHARED_LINK) -o $@ $(filter %.o,$^) -Wl,-soname,librds-perseas.so.$(SOVERSION) \
		-Wl,--version-script=client/rds/rds.map $(if $(SANITIZE),,-Wl,-z,defs) \
		-L$(BUILD) -lrvm-perseas -Wl,-rpath-link,$(BUILD)
	$(Q)ln -sf $(@F) $(BUILD)/librds-perseas.so.$(SOVERSION)
	$(Q)ln -sf librds-perseas.so.$(SOVERSION) $(BUILD)/librds-perseas.so

# What a program that is linked with the archive is linked with besides.
$(PRIVATE_LIBS): Makefile $(BUILD)/flags
	$(Q)echo '$(CLIENT_LIBS)' >$@

# --- the rest ----------------------------------------------------------------------------
#
# What is not the product is made beside its sources. A part of the tree that has none of a file's
# folder builds without it. Order counts: the tests link what bench/ has.

PARTS := $(wildcard client/python/python.mk deploy/install.mk bench/bench.mk tests/programs.mk \
	tests/check.mk tests/lint.mk tests/fuzz/fuzz.mk tests/cpp/cpp.mk tests/mutants/mutants.mk \
	tests/rdma/rdma.mk tests/peers/peers.mk tests/deb/deb.mk tests/cluster/cluster.mk \
	tests/container/container.mk tests/ansible/ansible.mk proto/model/model.mk)
include $(PARTS)

clean:
	rm -rf build

help:
	@sed -n '/^$$/q; s/^# \{0,1\}//p' Makefile
	@echo
	@echo "Targets:"
	@sed -n 's/^#: /  /p' Makefile $(PARTS)
	@echo "Suites of check, each by itself:"
	@echo "  $(addprefix check-,$(SUITES))"
