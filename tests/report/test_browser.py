"""The page in a real browser: quick, without a request or an error, every control by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hostile_logs import TEXTS, hostile_logs
from shops import family, shop
from told_run import CAREFUL, Run

from tenlines.core import events as ev
from tenlines.core.transcript import Text, ToolCall
from tenlines.report import page, read_run, render_head, render_item
from tenlines.report.pages import live_page
from tenlines.report.reading import Reading
from tenlines.trace.text import clean

pytestmark = pytest.mark.slow

DESK, PHONE = {"width": 1280, "height": 900}, {"width": 400, "height": 800}


TIMES = """() => [performance.getEntriesByType('navigation')[0].loadEventEnd,
    performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0]"""
SEARCH = """() => { const [box, began] = [document.getElementById('search'), performance.now()];
    box.value = 'hub 24000'; box.dispatchEvent(new Event('input')); return performance.now() - began; }"""


class Tab(NamedTuple):
    """A page that was opened, with everything it did beside being there."""

    page: Any
    faults: list[str]
    """Errors of the console, requests, dialogs."""

    def at(self, selector: str) -> Any:
        return self.page.locator(selector)

    def ids(self) -> list[str]:
        found: list[str] = self.page.eval_on_selector_all(".item", "all => all.map(one => one.id)")
        return found

    def current(self) -> str:
        return str(self.page.evaluate("document.querySelector('.item.current')?.id || ''"))

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def in_view(self, selector: str) -> bool:
        self.page.wait_for_timeout(60)  # two frames: what came into the document above it has its height then
        for _ in range(40):  # on a machine that has much else to do, some more
            box, height = self.at(selector).bounding_box(), self.page.viewport_size["height"]
            if box is not None and -1 <= box["y"] < height:
                return True
            self.page.wait_for_timeout(50)
        return False

    def is_as_wide_as_the_window(self) -> bool:
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))

    def judged(self, rule: str = "") -> list[str]:
        """Serious and critical faults that axe finds, by all its rules or by one."""
        from axe_playwright_python.sync_playwright import Axe

        options: Any = {"runOnly": [rule]} if rule else None
        found = Axe().run(self.page, options=options).response["violations"]
        return [
            f"{one['id']}: {node['html'][:150]}"
            for one in found
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"]
        ]


@pytest.fixture
def open_tab(chromium: Any, tmp_path: Path) -> Iterator[Callable[..., Tab]]:
    """Opens a page from a file."""
    contexts = []

    def opened(html: str, place: str = "", size: dict[str, int] = DESK, scheme: str = "light") -> Tab:
        file = tmp_path / f"{len(contexts)}.html"
        file.write_bytes(html.encode())
        context = chromium.new_context(viewport=size, color_scheme=scheme)
        contexts.append(context)
        tab = Tab(context.new_page(), [])
        tab.page.set_default_timeout(5_000)
        tab.page.on("console", lambda said: tab.faults.append(f"console: {said.text}"))
        tab.page.on("pageerror", lambda error: tab.faults.append(f"error: {error}"))
        tab.page.on("dialog", lambda dialog: (tab.faults.append("dialog"), dialog.dismiss()))
        tab.page.on("popup", lambda _: tab.faults.append("popup"))
        tab.page.on("request", lambda asked: tab.faults.append(asked.url) if asked.url != file.as_uri() else None)
        tab.page.goto(f"{file.as_uri()}{place}")
        return tab

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def one() -> str:
    """The page of a run of 120 steps, in which a tool fails now and then."""
    return page([read_run(shop(120))])


@pytest.fixture(scope="module")
def few() -> str:
    """The page of a short run that waits for a decision."""
    run = Run(CAREFUL, limits=ev.Limits(steps=20))
    for number in range(12):
        run.reply(f"step {number}", ToolCall(f"c{number}", "look", f'{{"n": {number}}}')).start().returned(
            text="x" * 3_000
        )
    run.call("pay").question(reason="it costs money")
    run.finish()
    moves = [("allow it and go on", "tenlines approve r --resume")]
    return page([read_run(run.log, Reading(moves=lambda story: moves))])


@pytest.fixture(scope="module")
def relatives() -> str:
    """The page of a run with a run under its call, and one under that."""
    logs = family()
    keyed = (("inner", "r3", "r2-call-1-1"), ("middle", "r2", "call-1-1"), ("outer", "", ""))
    from tenlines.report import ChildRef

    views = []
    for name, key, parent in keyed:
        child = views[-1].head if views else None
        refs = {} if child is None else {f"{name}:1:0": [ChildRef(child.key, child.run_id, "answered")]}
        views.append(read_run(logs[name], Reading(key=key, parent=parent, children=refs)))
    return page(views)


@pytest.fixture(scope="module")
def many() -> str:
    """The page of several runs."""
    views = [read_run(shop(3 + 5 * n, run_id=f"run{n}"), Reading(key=f"r{n + 1}")) for n in range(8)]
    stopped = Run(limits=ev.Limits(steps=1)).exchange()
    stopped.finish()
    return page([*views, read_run(stopped.log, Reading(key="r9"))])


# --- quick and quiet ------------------------------------------------------------------------------------


def test_two_thousand_steps_open_at_once(open_tab: Callable[..., Tab], say: Callable[[str], None]) -> None:
    html = page([read_run(shop(2_000))])
    tab = open_tab(html)
    load, paint = tab.page.evaluate(TIMES)
    search = tab.page.evaluate(SEARCH)
    say(
        f"a report of 2,000 steps ({len(html) / 1e6:.1f} MB): first painted after {paint:.0f} ms, loaded after "
        f"{load:.0f} ms, searched in {search:.0f} ms"
    )
    tab.page.evaluate("document.getElementById('search').blur()")
    tab.press("G")
    assert tab.current() == "end"
    assert tab.in_view("#end")
    for place in ("step-1000", "call-500-2", "step-3"):
        tab.page.evaluate(f"location.hash = '{place}'")
        assert tab.in_view(f"#{place}")
    elements = tab.page.evaluate("document.querySelectorAll('*').length")
    assert elements < 12_000, "items that are far away are not in the document"
    assert tab.faults == []


def test_a_run_of_one_step_and_one_of_none_are_pages_too(open_tab: Callable[..., Tab]) -> None:
    for log in (shop(1), Run().log):
        tab = open_tab(page([read_run(log)]))
        assert "end" in tab.ids()
        assert tab.faults == []


# --- the story ------------------------------------------------------------------------------------------


def test_going_from_item_to_item(open_tab: Callable[..., Tab], one: str) -> None:
    tab = open_tab(one)
    tab.press("j", "j", "j")
    assert (tab.current(), tab.page.evaluate("document.activeElement.id")) == ("step-2", "step-2")
    tab.press("k", "ArrowRight", "ArrowRight")
    assert tab.current() == "step-3"
    tab.press("o")
    assert tab.at("#call-3-1").get_attribute("open") is not None
    assert tab.at("#call-3-1-result, #call-3-1 .text").first.is_visible()
    tab.press("o", "g")
    assert tab.current() == "start"
    assert tab.at("#call-3-1").get_attribute("open") is None
    assert tab.faults == []


def test_unfolding_is_by_hand_and_all_at_once_and_is_kept(open_tab: Callable[..., Tab], one: str) -> None:
    tab = open_tab(one)
    tab.at("#call-2-1 > summary").click()
    assert tab.at("#call-2-1 .body").is_visible()
    tab.press("G")
    tab.page.wait_for_timeout(100)
    assert "step-2" not in tab.ids(), "it left the document"
    tab.press("g")
    tab.page.wait_for_timeout(100)
    assert tab.at("#call-2-1 .body").is_visible()
    tab.at("#unfold").click()
    assert tab.at("#unfold").inner_text() == "Fold all"
    tab.press("G")
    assert tab.at("#call-119-1 .body").is_visible(), "also what comes later"
    tab.press("e")
    assert not tab.at("#call-119-1 .body").is_visible()


def test_a_link_leads_to_a_call_that_is_folded_and_far_away(open_tab: Callable[..., Tab], one: str) -> None:
    tab = open_tab(one, "#call-108-2")
    assert tab.in_view("#call-108-2 .body")
    assert "no such parcel" in tab.at("#call-108-2").inner_text()
    tab.at("#call-108-2 a.link").click()
    assert tab.at("#say").inner_text() == "Link copied"
    tab.at("#step-108 .sent a").first.click()
    assert tab.page.url.endswith("#call-107-1")
    assert tab.in_view("#call-107-1 .body")
    tab.page.go_back()
    assert tab.in_view("#call-108-2")
    tab.at('.drawing g[data-go="step-1"]').first.click()
    assert tab.in_view("#step-1")


def test_searching_counts_goes_on_and_marks(open_tab: Callable[..., Tab], one: str) -> None:
    tab = open_tab(one)
    tab.press("/")
    tab.page.keyboard.type("hub 240")
    assert tab.at("#found").inner_text().endswith(" found")
    tab.press("Enter")
    first = tab.current()
    assert tab.at("#found").inner_text().startswith("1 of ")
    tab.press("Enter", "Shift+Enter")
    assert tab.current() == first
    tab.page.wait_for_timeout(100)
    top = tab.page.evaluate("[...CSS.highlights.get('found')][0].getBoundingClientRect().top")
    assert 60 < top < DESK["height"], "the find is in sight"
    tab.at("#next").click()
    second = tab.current()
    assert second != first
    tab.at("#previous").click()
    tab.at("#search").press("Escape")
    assert (tab.at("#search").input_value(), tab.at("#found").inner_text()) == ("", "")
    tab.at("#search").fill("nowhere to be found")
    assert tab.at("#found").inner_text() == "0 found"
    assert tab.faults == []


def test_filtering_leaves_what_was_asked_for(open_tab: Callable[..., Tab], one: str) -> None:
    tab = open_tab(one)
    tab.at("#filter").select_option("problem")
    assert tab.ids()[:3] == ["step-12", "step-24", "step-36"]
    tab.at("#filter").press("Escape")
    tab.page.evaluate("document.activeElement.blur()")
    tab.press("j", "j")
    assert tab.current() == "step-24"
    tab.page.evaluate("location.hash = 'step-13'")
    tab.page.wait_for_timeout(60)
    assert tab.in_view("#step-13")
    assert tab.at("#filter").input_value() == "", "a link to what is filtered out shows everything again"


def test_a_text_of_megabytes_comes_piece_by_piece(open_tab: Callable[..., Tab]) -> None:
    run = Run().call("look").start()
    text = "".join(f"{n:07} " for n in range(400_000)) + "<b>needle</b>"
    run.tell(ev.CallReturned, step=1, position=0, parts=(Text(text),))
    tab = open_tab(page([read_run(run.log)]), "#call-1-1")
    box = tab.at("#call-1-1 .text").nth(1)
    assert len(box.inner_text()) < 2_100
    tab.at("#call-1-1 .more").click()
    assert len(box.inner_text()) == 50_001
    tab.at('[data-piece="on"]').click()
    assert box.inner_text().startswith("…0006250")
    tab.at("#search").fill("needle")
    tab.at('[data-piece="fold"]').click()
    tab.at("#next").click()
    assert "<b>needle</b>" in box.inner_text()
    assert tab.at('[data-piece="on"]').is_hidden()
    assert tab.faults == []


def test_runs_under_calls_are_unfolded_in_place(open_tab: Callable[..., Tab], relatives: str) -> None:
    tab = open_tab(relatives)
    tab.at("#call-1-1 > summary").click()
    tab.at('[data-child="r2"]').click()
    assert tab.at("#r2-step-1").is_visible()
    tab.at('[data-child="r2"]').click()
    assert not tab.at('[data-child-story="r2"]').is_visible()
    deep = open_tab(relatives, "#r3-call-2-1")
    assert deep.in_view("#r3-call-2-1 .body")
    assert tab.faults == deep.faults == []


# --- the page -------------------------------------------------------------------------------------------


def test_the_theme_follows_the_system_unless_somebody_chooses(open_tab: Callable[..., Tab], one: str) -> None:
    tab = open_tab(one, scheme="dark")
    shade = "getComputedStyle(document.body).backgroundColor"
    dark = tab.page.evaluate(shade)
    tab.at("#theme").click()
    assert (tab.at("#theme").inner_text(), tab.page.evaluate(shade)) == ("Theme: dark", dark)
    tab.press("t")
    assert tab.at("#theme").inner_text() == "Theme: light"
    assert tab.page.evaluate(shade) != dark
    tab.page.reload()
    assert tab.page.evaluate(shade) != dark, "the choice is kept"


def test_the_keys_are_told(open_tab: Callable[..., Tab], one: str) -> None:
    tab = open_tab(one)
    tab.press("?")
    assert tab.at("#help").is_visible()
    tab.press("j", "Escape")
    assert not tab.at("#help").is_visible()
    assert tab.current() == "", "keys are for the dialog while it is open"
    tab.at("#help-button").click()
    tab.at("#help button").click()
    tab.at("#chart-tokens-data > summary").click()
    assert tab.at("#chart-tokens-data table").is_visible()
    tab.at("#chart-tokens-data a").nth(6).press("Enter")
    assert tab.in_view("#step-7")
    tab.at('#chart-dollars g[data-go="step-9"]').click()
    assert tab.in_view("#step-9")
    tab.press("Tab")
    assert tab.faults == []


def test_the_first_thing_that_tab_reaches_skips_to_the_story(open_tab: Callable[..., Tab], one: str) -> None:
    tab = open_tab(one)
    tab.press("Tab")
    assert tab.at(".skip").is_visible()
    tab.press("Enter")
    assert tab.page.evaluate("document.activeElement.id") == "story"


def test_a_place_that_is_not_there_is_said(open_tab: Callable[..., Tab], one: str) -> None:
    tab = open_tab(one)
    for place in ("step-4711", "call-4711-1", "%E0%A4%A", "<b>"):
        tab.page.evaluate("place => { document.getElementById('say').textContent = ''; location.hash = place; }", place)
        tab.page.wait_for_timeout(30)
        assert tab.at("#say").inner_text() == "That place is not on this page"
    assert tab.faults == []


def test_everything_is_printed(open_tab: Callable[..., Tab], one: str) -> None:
    tab = open_tab(one)
    tab.page.emulate_media(media="print")
    tab.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert len(tab.ids()) == 122
    assert not tab.at(".top").is_visible()


@pytest.mark.parametrize(("size", "scheme"), [(DESK, "light"), (DESK, "dark"), (PHONE, "light")])
def test_no_serious_fault_is_found_and_nothing_is_wider_than_the_window(
    open_tab: Callable[..., Tab], few: str, many: str, size: dict[str, int], scheme: str
) -> None:
    story = open_tab(few, "#step-12", size, scheme)
    story.press("o")
    runs = open_tab(many, "", size, scheme)
    inside = open_tab(many, "#r2-call-4-2", size, scheme)
    for tab in (story, runs, inside):
        assert tab.is_as_wide_as_the_window()
        if tab is story or (tab is runs and size is DESK):
            assert tab.judged("color-contrast" if scheme == "dark" else "") == []
        assert tab.faults == []


# --- several runs ---------------------------------------------------------------------------------------


def test_runs_are_sorted_found_and_opened(open_tab: Callable[..., Tab], many: str) -> None:
    tab = open_tab(many)
    first = "#runs-table tbody tr:first-child td:first-child"
    tab.at("#runs-table th button").nth(2).click()
    assert tab.at(first).inner_text() == "r"
    tab.at("#runs-table th button").nth(2).press("Enter")
    assert tab.at(first).inner_text() == "run7"
    assert tab.at("#runs-table th").nth(2).get_attribute("aria-sort") == "descending"
    tab.at("#search").fill("order 1036 is")
    assert tab.at("#found").inner_text() == "1 of 9 runs"
    tab.at("#search").press("Escape")
    tab.at(f"{first} a").click()
    assert tab.in_view("#r8-head")
    assert not tab.at("#runs").is_visible()
    tab.press("j", "j")
    assert tab.current() == "r8-step-1"
    tab.at(".brand a").click()
    tab.at("#runs").wait_for()
    tab.page.go_back()
    tab.at("#r8-head").wait_for()
    assert tab.faults == []


def test_two_runs_stand_side_by_side_and_where_they_part_is_marked(open_tab: Callable[..., Tab], many: str) -> None:
    tab = open_tab(many)
    assert tab.at("#compared").inner_text() == "The same up to step 2; 5 of 8 lines differ."
    tab.at("#one").select_option("r3")
    tab.at("#another").select_option("r3")
    assert tab.at("#compared").inner_text() == "All 13 steps are the same."
    tab.at("#both button").click()
    assert tab.at("#both tbody tr").count() == 13
    tab.at("#another").select_option("r9")
    assert tab.at("#both .apart").count() == 13
    tab.at("#both tbody a").first.click()
    assert tab.in_view("#r3-step-1")


# --- hostile, and live ----------------------------------------------------------------------------------


def test_hostile_texts_stay_text(open_tab: Callable[..., Tab]) -> None:
    logs = hostile_logs()
    alone = [page([read_run(log)]) for log in logs]
    together = page([read_run(log, Reading(key=f"r{n + 1}")) for n, log in enumerate(logs)])
    shown = ""
    for html in (*alone, together):
        tab = open_tab(html)
        if html is together:
            tab.at("#runs-table a").first.click()
        tab.press("e")
        tab.page.evaluate("document.querySelectorAll('.more').forEach((one) => one.click())")
        shown += tab.page.evaluate("document.body.textContent")
        tab.at("#search").fill("hit =")
        tab.at("#next").click()
        tab.page.mouse.move(300, 300)
        tab.press("j", "j", "o")
        assert tab.page.evaluate("typeof window.hit") == "undefined"
        assert tab.page.evaluate("document.querySelectorAll('script').length") == 2
        assert tab.page.evaluate("document.querySelectorAll('img, iframe, object, math, base, form').length") <= 3
        assert tab.faults == []
    assert sum(clean(text) in shown for text in TEXTS) >= len(TEXTS) - 3  # a few fields are on no page


def test_a_live_page_takes_what_has_changed(open_tab: Callable[..., Tab]) -> None:
    run, reading = Run().exchange().call("look").start(), Reading()
    for event in run.log:
        reading.take(event)
    tab = open_tab(live_page(reading.view(), csp_nonce="x"))
    tab.at("#call-2-1 > summary").click()
    known = len(run.log)
    run.returned(text="it came back").exchange("the next").reply("the answer")
    run.finish()
    for event in run.log[known:]:
        for id in reading.take(event):
            fragment = render_item(reading.item(id))
            told = {"id": fragment.id, "html": fragment.html, "texts": fragment.texts, "tags": fragment.tags}
            tab.page.evaluate("one => window.tenlines.put(one)", {**told, "path": fragment.path})
    head = render_head(reading.head())
    tab.page.evaluate("one => window.tenlines.put(one)", {"id": head.id, "html": head.html, "texts": {}})
    assert tab.ids() == ["start", "step-1", "step-2", "step-3", "step-4", "end"]
    assert tab.at("#call-2-1 .body").is_visible(), "what was unfolded stays so"
    assert "it came back" in tab.at("#call-2-1").inner_text()
    assert "answered" in tab.at("#head .badge").inner_text()
    assert "the answer" in tab.at("#end").inner_text()
    tab.press("j", "j")
    assert tab.current() == "step-1"
    assert tab.faults == []
