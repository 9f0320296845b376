"""The status page in a headless Chromium."""
import os
import shutil
import socket

import pytest
import wire

from cluster import wait_for
from drill import SECONDS, fill, run_command, wait_ownerless
from teller import tellers  # noqa: F401
from watching import Watch, options

MISSING = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
pytestmark = pytest.mark.skipif(bool(MISSING) and "CI" not in os.environ,
                                reason="not installed: " + ", ".join(MISSING))
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--window-size=1000,900")
# Everything beyond the right edge of the window.
OUTSIDE = """return [...document.querySelectorAll("body *")].filter(
    e => e.getBoundingClientRect().right > window.innerWidth + 0.5).map(e => e.outerHTML)"""
# At most one request a second: reads the text of several elements at the same moment.
TEXTS = """return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)"""
HOSTILE = "<img src=x onerror=\"document.title='owned'\">" + "w" * 120


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    selenium = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    wanted = selenium.ChromeOptions()
    wanted.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, "--user-data-dir=%s" % tmp_path_factory.mktemp("profile")):
        wanted.add_argument(flag)
    wanted.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = selenium.Chrome(options=wanted, service=Service(shutil.which("chromedriver")))
    driver.set_script_timeout(SECONDS)
    yield driver
    driver.quit()


@pytest.fixture
def page(chromium, mirrors, tmp_path):
    """A daemon and its loaded page. The page is left before the daemon ends, and earlier messages
    of the browser do not count."""
    daemon, = mirrors(1, options=options(tmp_path))
    shown = Page(chromium, daemon)
    chromium.get_log("browser")
    chromium.get(Watch(tmp_path).url)
    chromium.execute_script("performance.setResourceTimingBufferSize(1e6)")
    shown.wait(lambda: shown.texts("#ready") == ["ready"], "the first answer")
    yield shown
    chromium.get("about:blank")


class Page:
    def __init__(self, driver, daemon):
        self.driver, self.daemon = driver, daemon

    def texts(self, selector):
        return self.driver.execute_script(TEXTS, selector)

    def number(self, selector):
        text, = self.texts(selector)
        return int(text.replace(",", "")) if text.replace(",", "").isdigit() else None

    def click(self, selector):
        """The page may be rebuilt as soon as the click is done."""
        self.driver.execute_script("document.querySelector(arguments[0]).click()", selector)

    def answers(self):
        """Returns how many answers the page has had."""
        return self.driver.execute_script(
            "return performance.getEntriesByType('resource').length")

    def wait(self, predicate, what):
        try:
            return wait_for(predicate, SECONDS, what)
        except TimeoutError as error:
            raise TimeoutError("%s; the page: %s; %s" % (
                error, self.texts("body > :not(script)"),
                self.driver.get_log("browser"))) from None

    def resize(self, width, height=800):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 2, "mobile": True})

    def complaints(self):
        """Returns the browser's messages about scripts, policies and the like."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] == "SEVERE"]


def title(daemon):
    return "%s %s - perseasd" % (socket.gethostname(), daemon.mirror.tcp)


def test_it_says_which_daemon_it_is_of(page):
    """An operator may have the pages of several mirrors open."""
    assert page.texts("h1") == ["perseasd on %s, %s" % (socket.gethostname(),
                                                        page.daemon.mirror.tcp)]
    assert page.driver.title == title(page.daemon)
    assert "host " + socket.gethostname() in page.texts("#daemon dd")


def test_it_shows_a_store_that_moves_and_an_owner_that_ends(page, tellers):  # noqa: F811
    assert page.texts("#stores") == ["none"]
    owner = tellers.run("bank", [page.daemon], "create")
    owner.advances(100)
    page.wait(lambda: page.texts("[data-store] h3") == ["bank"], "the store")
    page.wait(lambda: page.texts(".owner")[0].endswith("over tcp, on this machine"),
              "its owner")
    page.wait(lambda: len(page.texts(".mirrors li")) == 1, "the mirror as its owner sees it")
    assert page.texts(".mirrors li")[0].startswith(page.daemon.address + "live")
    first = page.wait(lambda: page.number(".seq"), "transactions")
    page.wait(lambda: page.number(".seq") > first, "more transactions")
    page.wait(lambda: (page.number(".rate") or 0) > 0, "a rate")
    assert "claimed" in page.texts("#events strong")
    owner.kill9()
    wait_ownerless("bank", [page.daemon])
    page.wait(lambda: page.texts(".owner") == ["no owner"], "the owner's end")
    page.wait(lambda: page.texts("#events strong")[0] == "session-over", "the event")
    page.wait(lambda: page.number(".rate") == 0, "a rate of 0")
    assert page.complaints() == []


def test_what_a_hostile_owner_says_stays_text_on_a_phone(page):
    """Names of stores cannot contain markup, but a mirror's address and its trouble can. Their long
    words make nothing wider than a phone of 360 points, in light and dark mode."""
    fill("x" * 63, [page.daemon], {"s": b"contents"})
    fill("data", [page.daemon], {"s": b"contents"})
    control = wire.Control(page.daemon.address)
    control.claim("data", 1000)
    report = wire.field(1, HOSTILE) + wire.field(2, "resyncing") + wire.field(3, 0) + \
        wire.field(4, 3 << 20) + wire.field(5, 7 << 20) + wire.field(6, HOSTILE)
    assert control.ask(wire.field(7, wire.field(1, report))).get(1, 0) == 0
    page.resize(360)
    page.wait(lambda: page.texts(".mirrors .bad") == [HOSTILE], "the report")
    assert page.texts(".mirrors .row > :first-child") == [HOSTILE]
    assert "copied 3.0 MiB of 7.0 MiB" in page.texts(".mirrors li")[0]
    assert page.texts("img") == [] and page.driver.title == title(page.daemon)
    grounds = set()
    for scheme in "light", "dark":
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})
        assert page.driver.execute_script(OUTSIDE) == []
        assert page.driver.execute_script(
            "return document.documentElement.scrollWidth <= window.innerWidth") is True
        assert page.driver.execute_script("return window.innerWidth") == 360
        grounds.add(page.driver.execute_script(
            "return getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2
    assert page.complaints() == []


def test_of_many_stores_those_that_need_somebody_are_shown(page, owner):
    """A hundred stores on one daemon. All are well: one line, which opens, as does each store's.
    Then one store has no owner, and another's owner reports, in markup, a mirror that is away."""
    for k in range(100):
        assert run_command("create", "store%02d" % k, "--log-size", 65536,
                           mirrors=[page.daemon]).status == 0
    holder = owner("store07", [page.daemon])
    page.wait(lambda: page.texts("#well") == ["100 stores are well, 99 without an owner"], "all")
    assert page.texts(".card") == [] and page.texts("[data-row]") == []
    page.click("#well")
    page.wait(lambda: len(page.texts("[data-row]")) == 100, "a line for each")
    page.click("[data-row=store42] summary")
    page.wait(lambda: page.texts("[data-row=store42] .card h3") == ["store42"], "its card")
    answers = page.answers()
    page.wait(lambda: page.answers() > answers + 1, "other answers")
    assert page.texts("[data-row=store42] .card h3") == ["store42"], "it stays open"
    assert len(page.texts("[data-row]")) == 100

    holder.kill9()
    page.wait(lambda: page.texts("#stores > .card h3") == ["store07"], "its end")
    assert page.texts("#stores > .card .owner.bad") == ["no owner"]
    control = wire.Control(page.daemon.address)
    control.claim("store33", 1000)
    report = wire.field(1, HOSTILE) + wire.field(2, "down") + wire.field(6, HOSTILE)
    assert control.ask(wire.field(7, wire.field(1, report))).get(1, 0) == 0
    page.wait(lambda: page.texts("[data-store=store33] .mirrors .bad") == ["down", HOSTILE], "it")
    page.wait(lambda: sorted(page.texts("#stores > .card h3")) == ["store07", "store33"], "both")
    assert page.texts("#well") == ["98 stores are well, 98 without an owner"]
    page.click("#well")
    page.wait(lambda: page.texts("[data-row]") == [], "a line for all again")
    assert page.texts("img") == [] and page.complaints() == []


def test_who_needs_somebody_and_who_comes_first(page):
    """A mirror that was removed from the roster needs no attention, although its owner reports it.
    Damaged stores, and those that cannot commit because the owner is gone or silent, come first."""
    def told(name, states=(), **more):
        reports = [{"state": state, "trouble": state != "live" and "why"} for state in states]
        return {"name": name, "state": "consistent", "owner": "o", "live": True, "fabric": "tcp",
                "mirrors": reports, "next_loss": {"commit": None, "open": None}, **more}

    stores = [told("away", ["live", "down"]), told("well", ["live"]),
              told("left", ["live", "removed"]), told("gone", owner=""),
              told("torn", state="damaged", damage="why"),
              told("silent", live=False, silent_ms=9)]
    assert page.driver.execute_script("""
        owners.add("gone");
        return arguments[0].filter(concerns).sort(worse).map(store => store.name);""", stores) == [
            "gone", "torn", "silent", "away"]
    said = [{"known": known, "of": of, "name": name, "mirrors": lost} for known, of, name, lost in (
        (False, None, None, []), (True, None, None, []), (True, "mirror", None, ["a"]),
        (True, "mirror", None, ["a", "b"]), (True, "host", "h1", ["a", "b", "c"]),
        (True, "machine", None, ["a", "b"]))]
    assert page.driver.execute_script("return arguments[0].map(lost)", said) == [
        "not known, since not all mirrors tell where they run", "none alone", "a", "any of a, b",
        "host h1: mirrors a, b and c", "one machine: mirrors a and b"]
    assert page.driver.execute_script(
        "return mirror(arguments[0]).lastChild.className", {"state": "removed", "trouble": "why",
                                                            "lag": 0, "address": "a"}) == "faint"


@pytest.mark.parametrize("how", ["kill9", "stop"])
def test_a_daemon_that_does_not_answer_is_shown(page, how):
    """It is killed; or it is stopped while its socket still accepts connections, and resumes."""
    alarm = "return document.getElementById('alarm').hidden"
    assert page.driver.execute_script(alarm) is True
    getattr(page.daemon, how)()
    page.wait(lambda: page.driver.execute_script(alarm) is False, "an alarm")
    assert page.texts("#alarm")[0].startswith("The daemon has not answered for ")
    if how == "stop":
        page.daemon.cont()
        page.wait(lambda: page.driver.execute_script(alarm), "the end of the alarm")
