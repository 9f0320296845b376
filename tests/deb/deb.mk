# The packages, as users get them. Those of Debian are built from the tarball, looked at by lintian, built again,
# installed, upgraded, removed. The Makefile includes it. Not in SUITES: it fetches Debian systems and
# takes more time than `make check` has; check-style sees what can be seen of debian/ without that.

.PHONY: check-deb check-rpm

DEB_STEPS := prepare lintian rebuild piuparts life
#: check-deb       the Debian packages in clean roots: lintian, the same build twice, upgrades under
#:                 an owner, purge, autopkgtests (as root, with Debian's mirror; no part of check)
check-deb: dist
	@deploy/deps.sh build deb deb-test
	@$(RUN) deb --quiet 3600 --sum $(foreach step,$(DEB_STEPS),"$(step): tests/deb/check.sh $(step)")

# rpmlint of Debian knows the spec; of what is built here, without the macros of a system that rpm
# manages, it would say much that is not so there.
#: check-rpm       the RPM packages: rpmlint of the spec, and that rpmbuild makes them
check-rpm: dist
	@deploy/deps.sh build rpm rpm-test
	@$(RUN) rpm --quiet 3600 --sum "rpmlint: rpmlint --strict -c deploy/rpmlint.toml deploy/perseas.spec" \
		"packages: deploy/rpm.sh $(DIST) build/rpm-test --nocheck"
