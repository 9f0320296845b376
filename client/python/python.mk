# The Python package, and its tests. The Makefile includes it. `make` does not build the package, since
# not everybody has cffi; `make install` and `make check-python` do.
#
#   PYTHON_PACKAGE=0    `make install` leaves it out
#   PYTHONDIR           where it goes

PYTHON_PACKAGE ?= 1
PYTHON_VERSION = $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
# Where Debian's Python looks: packages of the system's own, and those of /usr/local.
PYTHONDIR ?= $(PREFIX)/lib/python$(if $(filter /usr,$(PREFIX)),3,$(PYTHON_VERSION))/dist-packages

PYTHON_SOURCES := $(wildcard client/python/*.py client/python/*.[ch] client/python/*.toml \
	client/python/perseas/* client/perseas*.h doc/examples/hash.[ch])
# For tests it has the library in it; what is installed finds libperseas.so as other programs do.
PYTHON_TREE := $(BUILD)/python
PYTHON_SHARED := $(BUILD)/python-shared

.PHONY: python check-python
#: python          the Python package, into build/python
python: $(PYTHON_TREE)/made

define setup_py
@$(PYTHON) -c 'import cffi, setuptools' || { echo "make: the Python package needs python3-cffi," \
	"python3-dev and python3-setuptools: deploy/deps.sh build; PYTHON_PACKAGE=0 leaves it out" >&2; \
	exit 1; }
@echo "  PYTHON  $(@D)"
$(Q)rm -rf $(@D) && mkdir -p $(@D)/base
$(Q)cd client/python && CC='$(firstword $(CC))' PERSEAS_BUILD=$(abspath $(BUILD)) \
	PYTHONDONTWRITEBYTECODE=1 $(1) $(PYTHON) setup.py -q egg_info \
	--egg-base $(abspath $(@D))/base build --build-base $(abspath $(@D))/base \
	--build-lib $(abspath $(@D)) install_egg_info --install-dir $(abspath $(@D)) \
	>$(abspath $(@D))/base/log 2>&1 || { cat $(abspath $(@D))/base/log; exit 1; }
$(Q)touch $@
endef

$(PYTHON_TREE)/made: $(PYTHON_SOURCES) VERSION $(ARCHIVE) $(PRIVATE_LIBS)
	$(call setup_py)

$(PYTHON_SHARED)/made: $(PYTHON_SOURCES) VERSION $(SHARED)
	$(call setup_py,PERSEAS_LINK=shared PERSEAS_LIBS="-L$(abspath $(BUILD)) -lperseas")

PROCESSES := tests/python/test_processes.py
PACKAGE_TESTS := $(PYTHON) -m pytest -q -rs -p no:cacheprovider tests/python
check-python:
	@$(SUBMAKE) all python $(BUILD)/bench/turns
	@$(RUN) python --jobs 2 --user \
		"misuse: $(PACKAGE_TESTS)/test_misuse.py $(PROCESSES)" \
		"package: $(PACKAGE_TESTS) --ignore tests/python/test_misuse.py --ignore $(PROCESSES)"
