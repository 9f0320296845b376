# What looks at the text of the sources: the public headers by themselves, the interface, the style,
# the layout, and the analyzers. The Makefile includes it. No target here runs the code that it looks
# at. By day: headers, abi, style, format. By night: lint, and the forms of headers that clang compiles.

.PHONY: check-headers check-headers-clang check-abi abi check-style check-lint check-plays tidy \
	cppcheck format check-format

# The public headers need nothing before them, in C and in C++.
HEADER_FLAGS := -fsyntax-only -Wall -Wextra -Werror -pedantic
# "label: command" of each form that a compiler accepts: $(call header_forms,label,C,C++).
header_forms = $(foreach header,$(HEADERS),\
		"$1 C11, $(notdir $(header)): $2 -std=c11 $(HEADER_FLAGS) -x c $(header)") \
	$(foreach header,$(RVM_HEADERS),\
		"$1 C11, $(notdir $(header)): $2 -std=c11 -I$(RVM) $(HEADER_FLAGS) -x c $(header)" \
		"$1 C++11, $(notdir $(header)): $3 -std=c++11 -I$(RVM) $(HEADER_FLAGS) -x c++ $(header)") \
	"$1 C99, perseas.h: $2 -std=c99 $(HEADER_FLAGS) -x c client/perseas.h" \
	"$1 C++11, perseas.h: $3 -std=c++11 $(HEADER_FLAGS) -x c++ client/perseas.h"
CLANG_HEADER_FORMS = $(call header_forms,clang,$(CLANG),$(CLANG))
check-headers:
	@$(RUN) headers $(call header_forms,gcc,$(CC),$(CXX))

check-headers-clang:
	@$(RUN) headers-clang $(CLANG_HEADER_FORMS)

# What programs compiled before count on, from the headers alone (doc/promises.md).
#: check-abi abi   whether the interface is that of client/*.abi; abi writes these anew
check-abi:
	@deploy/deps.sh abi
	@$(RUN) abi "interface: tests/abi.py"

abi:
	@deploy/deps.sh abi
	@tests/abi.py --write

check-style:
	@$(RUN) style "style: $(PYTHON) tests/style.py" "debian/: tests/deb/agree.py"

# What two tools say of the code that users run; .clang-tidy and tests/cppcheck.txt say what they are
# not asked, and why. A file that passed is looked at again when it was compiled again. The analyzer
# of clang-tidy takes seconds a file, so it leaves those of TIDY_LIGHTLY to cppcheck's, and leaves a
# function when it knows TIDY_NODES states of it. `make tidy TIDY_LIGHTLY= TIDY_NODES=225000` has it
# look at all files, as far as it does by itself.
TIDY_LIGHTLY ?= client/command/%
TIDY_NODES ?= 60000
TIDY_ARGS = $(foreach word,-Xclang -analyzer-config -Xclang max-nodes=$(TIDY_NODES),\
	--extra-arg=$(word))
TIDIED := $(patsubst %.c,$(BUILD)/lint/%.ok,$(call sources,$(ROOMS:%=%/*.c)))

$(BUILD)/lint/%.ok: $(BUILD)/obj/%.o .clang-tidy
	@mkdir -p $(@D)
	@echo "  TIDY    $*.c"
	$(Q)$(CLANG_TIDY) --quiet $(if $(filter $(TIDY_LIGHTLY),$*),--checks=-clang-analyzer-*) \
		$(TIDY_ARGS) $*.c -- $(BASE_CFLAGS) -I$(RVM) >$@.log 2>&1 || { cat $@.log; exit 1; }
	$(Q)touch $@

tidy: $(TIDIED)

cppcheck: $(PB).h
	@mkdir -p $(BUILD)/lint/cppcheck
	$(Q)cppcheck -q -j2 --std=c11 --enable=warning,performance,portability --error-exitcode=1 \
		--library=posix --cppcheck-build-dir=$(BUILD)/lint/cppcheck \
		--suppressions-list=tests/cppcheck.txt -D_GNU_SOURCE -DPERSEAS_RDMA=1 \
		-DPROTOBUF_C_VERSION_NUMBER=9999999 -DPROTOBUF_C_MIN_COMPILER_VERSION=0 \
		-DPERSEAS_VERSION='"$(VERSION)"' -I$(BUILD)/proto -iclient/python/build proto client server

# Lays out all that is C or C++, or says where it is laid out otherwise.
LAID_OUT = $(foreach dir,bench client debian doc proto server tests,$(shell find $(dir) \
	-name build -prune -o \( -name '*.[ch]' -o -name '*.[ch]pp' \) -print))
#: format          lays out all that is C or C++ by clang-format; check-format sees whether it is
format:
	@deploy/deps.sh format
	$(Q)$(CLANG_FORMAT) -i $(LAID_OUT)

check-format:
	@$(RUN) format "clang-format: $(CLANG_FORMAT) --dry-run -Werror $(LAID_OUT)"

# What takes too long for the day.
check-lint:
	@deploy/deps.sh build night
	@$(RUN) lint "clang-tidy: $(SUBMAKE) -k tidy" "cppcheck: $(SUBMAKE) cppcheck" \
		"Ansible: $(SUBMAKE) check-plays"

# The role and its playbooks, by rules that the folder names. ansible-lint keeps what it knows of
# them below its home, which is build/lint here.
check-plays:
	$(Q)yamllint --strict -c deploy/ansible/.yamllint deploy/ansible
	@mkdir -p $(BUILD)/lint/ansible
	$(Q)cd deploy/ansible && HOME=$(abspath $(BUILD)/lint/ansible) ansible-lint -q --nocolor
