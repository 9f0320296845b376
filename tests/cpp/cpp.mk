# The C++ binding of client/cpp: its test programs, what must not compile, and what it costs. The
# Makefile includes it. The binding is headers only, so nothing here is a part of the product.

.PHONY: check-cpp cpp-tests

CXX_TESTS := $(addprefix $(BUILD)/tests/cpp/,binding objects owners misuse plain)
CXX_FLAGS := -Iclient -Iclient/cpp -Wall -Wextra -Wpedantic -Wshadow $(WERROR) -pthread
CXX_BINDING := $(wildcard client/perseas*.h client/cpp/perseas.hpp client/cpp/perseas/*.hpp)

CXX_SANITIZED := $(addprefix build/sanitize/tests/cpp/,binding objects owners misuse)

# One with each compiler and each standard: tests/cpp/compile.py does the rest.
$(BUILD)/tests/cpp/binding: CXX_KIND := $(CXX) -std=c++20
$(BUILD)/tests/cpp/objects: CXX_KIND := $(CXX) -std=c++17
$(BUILD)/tests/cpp/owners: CXX_KIND := $(CXX) -std=c++17
$(BUILD)/tests/cpp/misuse: CXX_KIND := $(CXX) -std=c++17
$(BUILD)/tests/cpp/plain: CXX_KIND := $(CLANGXX) -std=c++17 -fno-exceptions
$(BUILD)/bench/cpp: CXX_KIND := $(CXX) -std=c++17 -O2 -Ibench

define compile_cxx
@mkdir -p $(@D)
@echo "  CXX     $<"
$(Q)$(CXX_KIND) $(CXX_FLAGS) -g1 $(SANITIZE_FLAGS) $< -o $@ $(ARCHIVE) $(CLIENT_LIBS)
endef

cpp-tests: $(CXX_TESTS)
$(CXX_TESTS): $(BUILD)/tests/cpp/%: tests/cpp/%.cpp tests/cpp/checks.hpp $(CXX_BINDING) $(ARCHIVE)
	$(compile_cxx)

$(BUILD)/bench/cpp: bench/cpp.cpp $(CXX_BINDING) $(ARCHIVE)
	$(compile_cxx)

# With sanitizers: what outlives its store must not even be read. `plain` is clang's, which cannot link
# the sanitizers of an archive that gcc made.
check-cpp:
	@$(SUBMAKE) all $(TELLER) $(BUILD)/tests/cpp/plain $(BUILD)/bench/cpp
	@$(SUBMAKE) $(SANITIZED) $(CXX_SANITIZED)
	@$(RUN) cpp --jobs 2 --user "compilers: tests/cpp/compile.py" \
		$(foreach test,$(CXX_SANITIZED),"$(notdir $(test)): tests/cpp/run.py $(test)") \
		"without exceptions: tests/cpp/run.py build/tests/cpp/plain" \
		"cost: bench/cpp.py --build $(BUILD)"
