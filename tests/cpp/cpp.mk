# The C++ binding of client/cpp: its test programs, what must not compile, and what it costs. The
# Makefile includes it. The binding is headers only, so nothing here is a part of the product. By day
# gcc alone compiles it, and programs run without sanitizers: suite `cpp`. The rest is `cpp-night`.

.PHONY: check-cpp check-cpp-night cpp-tests cpp-tests-day

CXX_NAMES := binding objects owners misuse
CXX_PLAIN := $(addprefix $(BUILD)/tests/cpp/,plain plain_clang)
CXX_TESTS := $(CXX_NAMES:%=$(BUILD)/tests/cpp/%) $(CXX_PLAIN)
CXX_FLAGS := -Iclient -Iclient/cpp -Wall -Wextra -Wpedantic -Wshadow $(WERROR) -pthread
CXX_BINDING := $(wildcard client/perseas*.h client/cpp/perseas.hpp client/cpp/perseas/*.hpp)

# One with each standard: tests/cpp/compile.py does the rest. Clang cannot link the sanitizers of an
# archive that gcc made, so its program has none.
$(BUILD)/tests/cpp/binding: CXX_KIND := $(CXX) -std=c++20
$(BUILD)/tests/cpp/objects: CXX_KIND := $(CXX) -std=c++17
$(BUILD)/tests/cpp/owners: CXX_KIND := $(CXX) -std=c++17
$(BUILD)/tests/cpp/misuse: CXX_KIND := $(CXX) -std=c++17
$(BUILD)/tests/cpp/plain: CXX_KIND := $(CXX) -std=c++17 -fno-exceptions
$(BUILD)/tests/cpp/plain_clang: CXX_KIND := $(CLANGXX) -std=c++17 -fno-exceptions
$(BUILD)/bench/cpp: CXX_KIND := $(CXX) -std=c++17 -O2 -Ibench

define compile_cxx
@mkdir -p $(@D)
@echo "  CXX     $<"
$(Q)$(CXX_KIND) $(CXX_FLAGS) -g1 $(SANITIZE_FLAGS) $< -o $@ $(ARCHIVE) $(CLIENT_LIBS)
endef

cpp-tests: $(CXX_TESTS)
$(CXX_TESTS): tests/cpp/checks.hpp $(CXX_BINDING) $(ARCHIVE)
$(CXX_NAMES:%=$(BUILD)/tests/cpp/%): $(BUILD)/tests/cpp/%: tests/cpp/%.cpp
	$(compile_cxx)
$(CXX_PLAIN): tests/cpp/plain.cpp
	$(compile_cxx)

$(BUILD)/bench/cpp: bench/cpp.cpp $(CXX_BINDING) $(ARCHIVE)
	$(compile_cxx)

# "label: command" of these programs.
cxx_runs = $(foreach test,$1,"$(notdir $(test)): tests/cpp/run.py $(test)")

cpp-tests-day: $(filter-out %/plain_clang,$(CXX_TESTS)) $(BUILD)/bench/cpp
check-cpp:
	@$(SUBMAKE) all cpp-tests-day
	@$(RUN) cpp --jobs 2 --user "compilers: tests/cpp/compile.py" \
		$(call cxx_runs,$(filter-out %/plain_clang,$(CXX_TESTS))) \
		"cost: bench/cpp.py --build $(BUILD)"

# With sanitizers: what outlives its store must not even be read.
CXX_SANITIZED := $(CXX_NAMES:%=build/sanitize/tests/cpp/%)
check-cpp-night:
	@deploy/deps.sh build test night
	@$(SUBMAKE) all $(BUILD)/tests/cpp/plain_clang
	@$(SUBMAKE) $(SANITIZED) $(CXX_SANITIZED)
	@$(RUN) cpp-night --jobs 2 --user "compilers: tests/cpp/compile.py --all" \
		$(call cxx_runs,$(CXX_SANITIZED) $(BUILD)/tests/cpp/plain_clang)
