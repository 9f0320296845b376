"""A test that fails while a guest's kernel panics shows nothing of the product. It is void and runs
again, at most five times in all; then it is undecided."""
import pytest
from _pytest.runner import runtestprotocol
from qemu import ATTEMPTS, panics


def undecided(reports):
    """Turns the failures of a void test into a skip whose reason the runner counts."""
    for report in reports:
        if report.failed:
            report.outcome = "skipped"
            why = "UNDECIDED: a guest's kernel panicked in each of %d attempts: %s"
            report.longrepr = (str(report.fspath), 1, why % (ATTEMPTS, panics[0]))
    return reports


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for attempt in range(1, ATTEMPTS + 1):
        panics.clear()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if not panics or not any(report.failed for report in reports):
            break
        print("attempt %d of %s is void: %s" % (attempt, item.nodeid, panics[0]), flush=True)
    else:
        undecided(reports)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
