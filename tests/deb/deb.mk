# The Debian packages, as users get them: built from the tarball, looked at by lintian, built again,
# installed, upgraded, removed. The Makefile includes it. Not in SUITES: it fetches Debian systems and
# takes more time than `make check` has; check-style sees what can be seen of debian/ without that.

.PHONY: check-deb

DEB_STEPS := prepare lintian rebuild piuparts life
#: check-deb       the Debian packages in clean roots: lintian, the same build twice, upgrades under
#:                 an owner, purge, autopkgtests (as root, with Debian's mirror; no part of check)
check-deb: dist
	@deploy/deps.sh build deb deb-test
	@$(RUN) deb --timeout 1800 $(foreach step,$(DEB_STEPS),"$(step): tests/deb/check.sh $(step)")
