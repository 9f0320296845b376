# What is installed where, and the tarball. The Makefile includes it; its variables say which folders.
# The administrator's own $(SYSCONFDIR)/perseasd.conf, and what lies in memory or on disk, is none of
# what is installed or taken away.

.PHONY: install uninstall man dist deb rpm container release

UNITS := $(addprefix $(BUILD)/deploy/,perseasd.service perseas-owner@.service)
PLAIN_UNITS := deploy/perseasd.socket deploy/perseas.target
# Always written anew: PREFIX may be another at `make install`.
$(UNITS): $(BUILD)/%: %.in always
	@mkdir -p $(@D)
	$(Q)sed -e 's|@BINDIR@|$(BINDIR)|' -e 's|@SBINDIR@|$(SBINDIR)|' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|' \
		-e 's|@DOCDIR@|$(DOCDIR)|' $< >$@

# Agents of Pacemaker, which looks for them in /usr/lib/ocf alone: where PREFIX is not /usr, give
# OCFDIR=/usr/lib/ocf.
AGENTS := $(addprefix $(BUILD)/deploy/ocf/,mirror owner)
$(AGENTS): $(BUILD)/%: %.in always
	@mkdir -p $(@D)
	$(Q)sed -e 's|@BINDIR@|$(BINDIR)|' -e 's|@SBINDIR@|$(SBINDIR)|' -e 's|@VERSION@|$(VERSION)|' $< >$@

HEADERS := $(sort $(wildcard client/perseas*.h))
# Files of pkg-config, which `make install` fills in where they go: PREFIX may be another there.
PKGCONFIG := client/perseas.pc.in client/rvm/rvm-perseas.pc.in client/rds/rds-perseas.pc.in
# Those of the C++ binding: <perseas.hpp>, and <perseas/...> that it includes.
CXX_HEADERS := $(sort $(wildcard client/cpp/perseas.hpp client/cpp/perseas/*.hpp))
# Of RVM's interface. They lie in a folder of their own, so that another RVM can be installed beside
# it, and so does the library under RVM's name: pkg-config's rvm-perseas, or -I and -L, choose them.
RVM_HEADERS := $(sort $(wildcard client/rvm/rvm*.h client/rds/r*.h))
RVM_INCLUDEDIR := $(INCLUDEDIR)/rvm-perseas
RVM_LIBDIR := $(LIBDIR)/rvm-perseas

SCRIPTS := deploy/perseas-rxe deploy/nut/perseas-power
# The manual pages, from what programs and headers say of themselves.
MAN := $(BUILD)/man
#: man             the manual pages, into build/man
man: $(MAN)/made
$(MAN)/made: deploy/man.py $(HEADERS) $(CXX_HEADERS) $(RVM_HEADERS) $(SCRIPTS) VERSION \
		$(COMMAND) $(DAEMON)
	@echo "  MAN     $(MAN)"
	$(Q)rm -rf $(MAN) && $(PYTHON) deploy/man.py --build $(BUILD) --output $(MAN) && touch $@

# The Ansible role with its playbooks, which people copy.
PLAYS := $(sort $(wildcard deploy/ansible/*.md deploy/ansible/*.yml \
	deploy/ansible/roles/perseas/*/*.yml deploy/ansible/roles/perseas/*/*.py \
	deploy/ansible/roles/perseas/*/*.j2))

# What goes where, by its name in the tree. Documents lie as in the tree, so that they find each other.
SBIN_FILES := $(DAEMON) $(SCRIPTS)
DOC_FILES := README.md CHANGELOG.md CONTRIBUTING.md LICENSE SECURITY.md proto/PROTOCOL.md \
	$(wildcard doc/*.md doc/examples/*.[ch] doc/examples/*.cpp client/python/examples/*.py \
	deploy/*.md deploy/kubernetes/*.yaml) deploy/alerts.yaml deploy/grafana.json \
	deploy/container/compose.yaml deploy/container/Containerfile.bank $(PLAYS)
LIB_NAMES := libperseas.so.$(VERSION) libperseas.so.$(SOVERSION) libperseas.so libperseas.a \
	librvm-perseas.so.$(VERSION) librvm-perseas.so.$(SOVERSION) librvm-perseas.so librvm-perseas.a \
	librds-perseas.so.$(VERSION) librds-perseas.so.$(SOVERSION) librds-perseas.so librds-perseas.a \
	$(addprefix rvm-perseas/,librvm.so librvm.a librds.so librds.a libseg.so libseg.a) \
	$(addprefix pkgconfig/,$(notdir $(PKGCONFIG:.in=)))

#: install uninstall   programs, library, documents, units; DESTDIR, PREFIX (/usr/local)
install: programs man $(UNITS) $(AGENTS) $(if $(filter 1,$(PYTHON_PACKAGE)),$(PYTHON_SHARED)/made)
	install -d $(addprefix $(DESTDIR),$(BINDIR) $(SBINDIR) $(INCLUDEDIR) $(LIBDIR)/pkgconfig \
		$(DOCDIR) $(UNITDIR) $(SYSUSERSDIR) $(TMPFILESDIR) \
		$(OCFDIR)/resource.d/perseas $(OCFDIR)/lib/perseas)
	install -m 755 $(COMMAND) $(DESTDIR)$(BINDIR)/
	install -m 755 $(SBIN_FILES) $(DESTDIR)$(SBINDIR)/
	install -m 755 $(SHARED) $(DESTDIR)$(LIBDIR)/
	ln -sf libperseas.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libperseas.so.$(SOVERSION)
	ln -sf libperseas.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/libperseas.so
	install -m 644 $(ARCHIVE) $(DESTDIR)$(LIBDIR)/
	install -m 755 $(RVM_SHARED) $(DESTDIR)$(LIBDIR)/
	ln -sf librvm-perseas.so.$(VERSION) $(DESTDIR)$(LIBDIR)/librvm-perseas.so.$(SOVERSION)
	ln -sf librvm-perseas.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/librvm-perseas.so
	install -m 644 $(RVM_ARCHIVE) $(DESTDIR)$(LIBDIR)/
	install -m 755 $(RDS_SHARED) $(DESTDIR)$(LIBDIR)/
	ln -sf librds-perseas.so.$(VERSION) $(DESTDIR)$(LIBDIR)/librds-perseas.so.$(SOVERSION)
	ln -sf librds-perseas.so.$(SOVERSION) $(DESTDIR)$(LIBDIR)/librds-perseas.so
	install -m 644 $(RDS_ARCHIVE) $(DESTDIR)$(LIBDIR)/
	install -d $(DESTDIR)$(RVM_LIBDIR) $(DESTDIR)$(RVM_INCLUDEDIR)/rvm
	for end in so a; do \
		ln -sf ../librvm-perseas.$$end $(DESTDIR)$(RVM_LIBDIR)/librvm.$$end && \
		ln -sf ../librds-perseas.$$end $(DESTDIR)$(RVM_LIBDIR)/librds.$$end && \
		ln -sf ../librds-perseas.$$end $(DESTDIR)$(RVM_LIBDIR)/libseg.$$end || exit 1; done
	install -m 644 $(RVM_HEADERS) $(DESTDIR)$(RVM_INCLUDEDIR)/rvm/
	for file in $(PKGCONFIG:.in=); do \
		to=$(DESTDIR)$(LIBDIR)/pkgconfig/$${file##*/}; \
		sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
			-e 's|@PRIVATE@|$(CLIENT_LIBS)|' $$file.in >$$to && chmod 644 $$to || exit 1; done
	install -m 644 $(HEADERS) $(DESTDIR)$(INCLUDEDIR)/
	for file in $(CXX_HEADERS:client/cpp/%=%); do \
		install -D -m 644 client/cpp/$$file $(DESTDIR)$(INCLUDEDIR)/$$file || exit 1; done
	cd $(MAN) && for page in man?/*; do \
		install -D -m 644 $$page $(abspath $(DESTDIR)$(MANDIR))/$$page || exit 1; done
	install -d $(DESTDIR)$(BASHCOMPDIR) $(DESTDIR)$(ZSHCOMPDIR)
	$(COMMAND) completion bash >$(DESTDIR)$(BASHCOMPDIR)/perseas
	$(COMMAND) completion zsh >$(DESTDIR)$(ZSHCOMPDIR)/_perseas
	[ "$(PYTHON_PACKAGE)" != 1 ] || { rm -rf $(INSTALLED_PYTHON) && \
		install -d $(DESTDIR)$(PYTHONDIR) && cp -r $(PYTHON_SHARED)/perseas \
			$(PYTHON_SHARED)/perseas-*.egg-info $(DESTDIR)$(PYTHONDIR)/; }
	for file in $(DOC_FILES); do \
		install -D -m 644 $$file $(DESTDIR)$(DOCDIR)/$$file || exit 1; done
	install -m 644 deploy/perseasd.conf $(DESTDIR)$(DOCDIR)/
	install -m 644 $(UNITS) $(PLAIN_UNITS) $(DESTDIR)$(UNITDIR)/
	install -m 755 $(AGENTS) $(DESTDIR)$(OCFDIR)/resource.d/perseas/
	install -m 644 deploy/ocf/functions.sh $(DESTDIR)$(OCFDIR)/lib/perseas/
	install -m 644 deploy/perseas.sysusers $(DESTDIR)$(SYSUSERSDIR)/perseas.conf
	install -m 644 deploy/perseas.tmpfiles $(DESTDIR)$(TMPFILESDIR)/perseas.conf

INSTALLED_PYTHON = $(DESTDIR)$(PYTHONDIR)/perseas $(DESTDIR)$(PYTHONDIR)/perseas-*.egg-info

uninstall:
	rm -rf $(INSTALLED_PYTHON)
	rm -f $(DESTDIR)$(BINDIR)/perseas
	rm -f $(addprefix $(DESTDIR)$(SBINDIR)/,$(notdir $(SBIN_FILES)))
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/,$(LIB_NAMES))
	rm -f $(addprefix $(DESTDIR)$(INCLUDEDIR)/,$(notdir $(HEADERS)) $(CXX_HEADERS:client/cpp/%=%))
	rm -f $(addprefix $(DESTDIR)$(RVM_INCLUDEDIR)/rvm/,$(notdir $(RVM_HEADERS)))
	for dir in $(INCLUDEDIR)/perseas $(RVM_INCLUDEDIR)/rvm $(RVM_INCLUDEDIR) $(RVM_LIBDIR); do \
		[ ! -d $(DESTDIR)$$dir ] || \
			rmdir --ignore-fail-on-non-empty $(DESTDIR)$$dir || exit 1; done
	rm -f $(addprefix $(DESTDIR)$(MANDIR)/,man1/perseas.1 man1/perseas-*.1 man3/libperseas.3 \
		man3/perseas.hpp.3 man3/librvm-perseas.3 man3/librds-perseas.3 man3/perseas_*.3 man5/perseasd.conf.5 \
		man8/perseasd.8 $(patsubst %,man8/%.8,$(notdir $(SCRIPTS))))
	rm -f $(DESTDIR)$(BASHCOMPDIR)/perseas $(DESTDIR)$(ZSHCOMPDIR)/_perseas
	rm -f $(addprefix $(DESTDIR)$(DOCDIR)/,$(DOC_FILES) perseasd.conf)
	rm -f $(addprefix $(DESTDIR)$(UNITDIR)/,$(notdir $(UNITS) $(PLAIN_UNITS)))
	rm -rf $(addprefix $(DESTDIR)$(OCFDIR)/,resource.d/perseas lib/perseas)
	for dir in resource.d lib ''; do [ ! -d $(DESTDIR)$(OCFDIR)/$$dir ] || \
		rmdir --ignore-fail-on-non-empty $(DESTDIR)$(OCFDIR)/$$dir || exit 1; done
	rm -f $(DESTDIR)$(SYSUSERSDIR)/perseas.conf $(DESTDIR)$(TMPFILESDIR)/perseas.conf
	for dir in client/python/examples client/python client doc/examples doc deploy/container \
		deploy/kubernetes $(patsubst %/,%,$(sort $(dir $(filter deploy/ansible/roles/%,$(PLAYS))))) \
		deploy/ansible/roles/perseas deploy/ansible/roles deploy/ansible deploy proto ''; do [ ! -d $(DESTDIR)$(DOCDIR)/$$dir ] || \
		rmdir --ignore-fail-on-non-empty $(DESTDIR)$(DOCDIR)/$$dir || exit 1; done

# What git knows of, as it lies in the tree. The same commit makes the same file, whoever packs it
# and when: order, owners, rights and times are not those of the folder. SOURCE_DATE_EPOCH is the
# time of all files, that of the commit if nobody says another one.
DIST := build/perseas-$(VERSION).tar.gz
#: dist            build/perseas-VERSION.tar.gz
dist:
	@mkdir -p build
	@git ls-files | LC_ALL=C sort | tar -cf build/dist.tar --format=gnu --owner=0 --group=0 \
		--numeric-owner --mode=u+rw,go-w,a+rX --no-recursion \
		--mtime=@$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} \
		--transform 's|^|perseas-$(VERSION)/|' -T -
	@gzip -9n <build/dist.tar >$(DIST) && rm build/dist.tar
	@echo $(DIST)

#: deb             Debian packages of that tarball, into build/deb
deb: dist
	@deploy/deps.sh build deb
	@deploy/deb.sh $(DIST) build/deb

#: rpm             RPM packages of it, into build/rpm
rpm: dist
	@deploy/deps.sh build rpm
	@deploy/rpm.sh $(DIST) build/rpm

#: container       images localhost/perseas and localhost/perseas-bank of those Debian packages, for
#:                 podman and, in build/, as archives (as root, with Debian's mirror)
container: deb
	@deploy/deps.sh container
	@deploy/container/build.sh build/deb build

# What is published, apart from the signature. A release needs a tree that is committed, a whole
# `make check-night` of it, and its notes. NOT_RUN=1 leaves out suites that a machine could not run.
NOT_RUN ?=
RELEASE := build/release/perseas-$(VERSION)
#: release         tarball, Debian packages, notes and SHA256SUMS, into build/release
release:
	@deploy/deps.sh build deb abi
	@NIGHT="$(NIGHT)" NOT_RUN=$(NOT_RUN) deploy/release.sh check $(VERSION)
	@tests/abi.py
	@$(MAKE) --no-print-directory deb
	@NIGHT="$(NIGHT)" deploy/release.sh collect $(VERSION) $(RELEASE) $(DIST) \
		$$(find build/deb -maxdepth 1 -type f ! -name '*.log')
