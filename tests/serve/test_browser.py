"""The pages in a real browser: what a person sees, decides, says and stops, while runs go on in other processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from serve_world import PATIENCE_S, SECRET, Site, call, ended_run, until, waiting_run

from browser import browser
from tenlines.core import events as ev
from tenlines.drivers import decisions
from tenlines.drivers.decisions import Decision
from tenlines.journal.sqlite import SqliteJournal
from tenlines.ports import SystemClock

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as one:
        yield one


class Tab:
    """A page, and all that went wrong on it."""

    def __init__(self, page: Any) -> None:
        self.page, self.errors, self.asked = page, list[str](), list[str]()
        page.set_default_timeout(PATIENCE_S * 1000)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("dialog", lambda dialog: self.errors.append(f"dialog: {dialog.message}"))

    def _said(self, message: Any) -> None:
        """A refusal is an answer; Chromium tells it all the same."""
        if message.type in ("error", "warning") and "responded with a status of 4" not in message.text:
            self.errors.append(message.text)

    def open(self, url: str) -> Any:
        self.page.goto(url)
        self.page.wait_for_selector("#link.on", state="attached")
        return self.page


@pytest.fixture
def tab(chromium: Any, site: Site) -> Iterator[Tab]:
    """A tab in which somebody came with the token. Nothing may go wrong, and nobody else may be asked."""
    with opened(chromium, site) as tab:
        yield tab


@contextmanager
def opened(chromium: Any, site: Site, **options: Any) -> Iterator[Tab]:
    context = chromium.new_context(**options)
    tab = Tab(context.new_page())
    tab.open(site.url)
    yield tab
    assert tab.errors == []
    assert all(url.startswith((site.origin, "data:")) for url in tab.asked)
    context.close()


def told(page: Any) -> str:
    """What the page says about what a person did."""
    page.wait_for_selector("#told:not(:empty)")
    return str(page.inner_text("#told > span:first-child"))


def leaves(journal: SqliteJournal, run_id: str) -> list[ev.ApprovalGiven]:
    return [event for event in journal.read(run_id) if isinstance(event, ev.ApprovalGiven)]


# --- coming in ------------------------------------------------------------------------------------------------


def test_the_token_leaves_the_address_and_opens_every_page(tab: Tab, site: Site, journal: SqliteJournal) -> None:
    page = tab.page
    assert page.url == f"{site.origin}/"
    assert site.token not in page.content()
    assert page.evaluate("document.cookie") == ""
    page.click(f'a[href="/runs/{journal.runs()[-1].run_id}"]')
    page.wait_for_selector("#head")
    page.click("text=All runs")
    page.wait_for_selector("#rows")


def test_another_site_reaches_nothing(chromium: Any, site: Site, journal: SqliteJournal, tmp_path: Path) -> None:
    """A page of another origin, in the browser of somebody who came with the token."""
    run_id = waiting_run(journal)
    context = chromium.new_context()
    page = context.new_page()
    page.goto(site.url)
    page.wait_for_selector("#rows")
    other = context.new_page()
    (tmp_path / "evil.html").write_text("<form id=f method=post></form>")
    other.goto((tmp_path / "evil.html").as_uri())
    target = f"{site.origin}/runs/{run_id}/cancel"
    seen = other.evaluate(
        """async (url) => {
            const said = [];
            for (const mode of ['cors', 'no-cors']) for (const method of ['GET', 'POST']) {
                try {
                    const body = method === 'POST' ? new URLSearchParams('mode=now') : undefined;
                    const answer = await fetch(url, { method, mode, body, credentials: 'include' });
                    said.push(answer.type + (await answer.text()).length);
                } catch { said.push('refused'); }
            }
            return said;
        }""",
        target,
    )
    assert set(seen) <= {"refused", "opaque0"}
    with other.expect_navigation():
        other.evaluate("(url) => { const f = document.getElementById('f'); f.action = url; f.submit(); }", target)
    assert "Requests of other origins are refused." in other.content()
    assert journal.letters({run_id: 0}) == []
    framed = context.new_page()
    framed.set_content(f'<iframe src="{site.origin}/"></iframe>')
    assert framed.frames[-1].url != f"{site.origin}/" or "Runs" not in framed.frames[-1].content()
    context.close()


# --- deciding -------------------------------------------------------------------------------------------------


def test_a_call_is_approved_while_its_run_waits_in_another_process_which_goes_on_to_its_end(
    tab: Tab, site: Site, shop: Path, journal: SqliteJournal, worker: Any
) -> None:
    arguments = {"amount": 500, "to": "Bob", "api_key": SECRET}
    process, run_id = worker("approve", [call("pay", **arguments), "all paid"])
    page = tab.open(f"{site.origin}/runs/{run_id}")
    page.wait_for_selector(".question")
    assert '"amount": 500' in page.inner_text(".question pre")
    assert SECRET not in page.content()
    page.click("button:text-is('Approve')")
    assert told(page) == "Allowed. The run goes on when it is resumed."
    assert page.inner_text("#told code") == f"tenlines resume {run_id} --journal {shop / 'journal.db'}"
    page.wait_for_selector("#head .standing:text('answered')")
    assert "all paid" in page.inner_text("#head")
    assert page.locator(".question").count() == 0
    assert process.communicate(timeout=PATIENCE_S)[0] == "answered all paid\n"
    assert f"500 Bob {SECRET}\n" in (shop / "paid.txt").read_text()  # what was hidden was not lost
    (leave,) = leaves(journal, run_id)
    assert (leave.verdict, leave.by) == ("allow", "Carla")


def test_a_call_is_denied_with_a_reason_by_keyboard_alone(tab: Tab, site: Site, journal: SqliteJournal) -> None:
    run_id = waiting_run(journal)
    page = tab.open(f"{site.origin}/runs/{run_id}")
    page.focus(".question pre")
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # Deny…
    page.keyboard.type("not <b>that</b> much")
    page.keyboard.press("Enter")
    assert told(page) == "Denied. The run goes on when it is resumed."
    assert page.evaluate("document.activeElement.id") == "told"
    (leave,) = leaves(journal, run_id)
    assert (leave.verdict, leave.reason, leave.by) == ("deny", "not <b>that</b> much", "Carla")
    page.wait_for_selector("#desk-state code")
    assert page.inner_text("#desk-state p").startswith("Everything is decided.")


def test_a_call_is_approved_with_other_arguments_which_are_checked(
    tab: Tab, site: Site, journal: SqliteJournal
) -> None:
    run_id = waiting_run(journal, {"amount": 500, "api_key": SECRET})
    page = tab.open(f"{site.origin}/runs/{run_id}")
    page.click("text=Edit…")
    field = page.locator("[name=arguments]")
    assert json.loads(field.input_value()) == {"amount": 500, "api_key": "[redacted]"}
    for typed, words in (("[", "one JSON object"), ('{"amount": "much"}', "cannot be put in place")):
        field.fill(typed)
        page.click("text=Approve with these")
        page.wait_for_selector(f"#told:has-text('{words}')")
    assert leaves(journal, run_id) == []
    field.fill('{"amount": 5, "api_key": "[redacted]"}')
    page.click("text=Approve with these")
    page.wait_for_selector("#told.tone-good")
    (leave,) = leaves(journal, run_id)
    assert json.loads(leave.arguments or "") == {"amount": 5, "api_key": SECRET}


def test_a_decision_about_what_is_decided_already_is_refused_in_words(
    tab: Tab, site: Site, journal: SqliteJournal
) -> None:
    run_id = waiting_run(journal)
    page = tab.open(f"{site.origin}/runs/{run_id}")
    page.evaluate("document.querySelector('.question').id = 'kept'")  # as if the news had not come yet
    decisions.decide(journal, SystemClock(), run_id, None, Decision("deny", "Ann"))
    page.click("#kept >> button:text-is('Approve')")
    page.wait_for_selector("#told.tone-bad")
    assert told(page) == f"everything about run {run_id} is decided: resume it"
    assert [leave.by for leave in leaves(journal, run_id)] == ["Ann"]


def test_what_somebody_types_is_not_taken_away_by_what_happens(tab: Tab, site: Site, journal: SqliteJournal) -> None:
    run_id = waiting_run(journal, {"amount": 1}, {"amount": 2})
    page = tab.open(f"{site.origin}/runs/{run_id}")
    page.click("#desk-call-1-2 >> text=Deny…")
    page.keyboard.type("half a rea")
    page.fill("[name=text]", "half a remark")
    decisions.decide(journal, SystemClock(), run_id, "1.1", Decision("allow", "Ann"))
    until(lambda: page.locator(".question").count() == 1)
    page.keyboard.type("!") if page.evaluate("document.activeElement.name") == "reason" else None
    assert page.input_value("#desk-call-1-2 [name=reason]").startswith("half a rea")
    assert page.input_value("[name=text]") == "half a remark"


# --- talking and stopping ---------------------------------------------------------------------------------------


def test_a_run_of_another_process_is_told_something_and_stopped(
    tab: Tab, site: Site, journal: SqliteJournal, worker: Any
) -> None:
    process, run_id = worker("talk", [call("step_on", n=1), "never"])
    page = tab.open(f"{site.origin}/runs/{run_id}")
    page.wait_for_selector("#desk-state:has-text('works on it.')")
    page.fill("[name=text]", "Hurry <script>alert(1)</script>")
    page.click("text=Say it")
    assert told(page) == "Posted. The story shows it as soon as the run has heard it."
    page.wait_for_selector(".remark:has-text('Hurry <script>alert(1)</script>')")
    assert page.inner_text(".remark strong") == "Carla said"
    page.click("text=Cancel the run…")
    page.keyboard.type("lunch")
    page.click("text=Stop at once")
    page.wait_for_selector("#head .standing:text('cancelled')")
    assert page.locator("#desk-talk").is_hidden()
    assert process.communicate(timeout=PATIENCE_S)[0] == "cancelled None\n"
    (stop,) = (event for event in journal.read(run_id) if isinstance(event, ev.CancelRequested))
    assert (stop.mode, stop.reason, stop.by) == ("now", "lunch", "Carla")


# --- live -----------------------------------------------------------------------------------------------------


def test_the_list_shows_runs_as_they_come_and_go_on(
    tab: Tab, site: Site, shop: Path, journal: SqliteJournal, worker: Any
) -> None:
    page = tab.page
    _, run_id = worker("listed", [call("step_on", n=1), "arrived"])
    page.wait_for_selector(f"#run-{run_id}:has-text('open, process')")
    assert page.locator("#rows tr").first.get_attribute("id") == f"run-{run_id}"
    (shop / "listed.1").touch()
    page.wait_for_selector(f"#run-{run_id}:has-text('answered')")
    page.keyboard.press("/")
    page.keyboard.type("listed answered")
    assert page.locator("#rows tr:visible").count() == 1
    assert page.inner_text("#shown").startswith("1 of ")


def test_a_page_that_nobody_sees_gives_its_connection_back_and_catches_up(
    chromium: Any, site: Site, shop: Path, worker: Any
) -> None:
    """More pages than a browser has connections for one server."""
    _, run_id = worker("tabs", [call("step_on", n=1), "arrived"])
    with opened(chromium, site) as first:
        context = first.page.context
        for _ in range(6):
            other = context.new_page()
            other.goto(f"{site.origin}/runs/{run_id}", wait_until="commit")
            other.wait_for_selector("#head")
            other.evaluate(HIDE)
        last = context.new_page()
        last.goto(f"{site.origin}/runs/{run_id}")
        last.wait_for_selector("#link.on")
        (shop / "tabs.1").touch()
        last.wait_for_selector("#head .standing:text('answered')")
        assert "answered" not in other.inner_text("#head")
        assert other.inner_text("#link") == "paused"
        other.evaluate(SHOW)
        other.wait_for_selector("#head .standing:text('answered')")


HIDE = """() => {
    Object.defineProperty(document, 'hidden', { configurable: true, value: true });
    document.dispatchEvent(new Event('visibilitychange'));
}"""
SHOW = HIDE.replace("value: true", "value: false")


def test_a_server_that_ends_is_said_to_have_and_nothing_is_done(
    chromium: Any, shop: Path, journal: SqliteJournal
) -> None:
    site, run_id = Site(shop), waiting_run(journal)
    context = chromium.new_context()
    page = context.new_page()
    page.goto(site.url)
    page.wait_for_selector("#rows")
    page.goto(f"{site.origin}/runs/{run_id}")
    page.wait_for_selector("#link.on")
    site.close()
    page.wait_for_selector("#link.off:has-text('the server does not answer')")
    page.click("button:text-is('Approve')")
    assert told(page) == "The server does not answer; nothing was done."
    assert leaves(journal, run_id) == []
    context.close()


# --- looks --------------------------------------------------------------------------------------------------------

HOSTILE = "<img src=x onerror=alert(1)></script><script>document.title='owned'</script>\u202etxet"
VIEWS = [("light", 1200), ("dark", 1200), ("light", 400)]


@pytest.mark.parametrize(("scheme", "width"), VIEWS, ids=str)
def test_hostile_texts_stay_texts_and_nobody_is_kept_out(
    chromium: Any, site: Site, journal: SqliteJournal, scheme: Any, width: int
) -> None:
    run_id = waiting_run(journal, {"amount": 1, "to": HOSTILE}, {"amount": 2}, task=HOSTILE)
    ended_run(journal, task=HOSTILE)
    with opened(chromium, site, color_scheme=scheme, viewport={"width": width, "height": 900}) as tab:
        for path in ("/", f"/runs/{run_id}"):
            page = tab.open(f"{site.origin}{path}")
            assert HOSTILE[:20] in page.inner_text("body")
            assert page.locator("img").count() == 0
            assert "owned" not in page.title() or path != "/"
            if path != "/":
                page.click("#desk-call-1-1 >> text=Edit…")
                page.click("#desk-call-1-2 >> text=Deny…")
                page.click("text=Cancel the run…")
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{path} is {wide} pixels wide"
            found = [one for one in Axe().run(page).response["violations"] if one["impact"] in ("serious", "critical")]
            assert [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found] == []
