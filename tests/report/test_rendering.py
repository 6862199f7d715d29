"""HTML: that it is well-formed, holds all that is said, and nothing of it is taken for HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser

import msgspec
import pytest
from hostile_logs import TEXTS, hostile_logs
from shops import family, shop
from told_run import Run

from tenlines.core import events as ev
from tenlines.core.transcript import Text
from tenlines.report import Fragment, page, read_run, render_charts, render_head, render_item
from tenlines.report.model import RunView
from tenlines.report.pages import live_page
from tenlines.report.reading import Reading
from tenlines.report.rendering import SHOWN_CHARS, as_data
from tenlines.trace.text import clean

VOID = {"meta", "link", "input", "br", "col"}
OURS = frozenset(
    [
        "html",
        "head",
        "meta",
        "title",
        "link",
        "style",
        "body",
        "a",
        "header",
        "p",
        "code",
        "form",
        "label",
        "input",
        "output",
        "button",
        "select",
        "option",
        "main",
        "section",
        "h1",
        "h2",
        "h3",
        "h4",
        "ul",
        "ol",
        "li",
        "dl",
        "div",
        "dt",
        "dd",
        "small",
        "span",
        "svg",
        "rect",
        "line",
        "circle",
        "polyline",
        "text",
        "g",
        "figure",
        "figcaption",
        "details",
        "summary",
        "pre",
        "article",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "strong",
        "noscript",
        "footer",
        "dialog",
        "kbd",
        "script",
    ]
)
NAMES = re.compile(r"[a-z][a-zA-Z-]*[12]?")


class Tags(HTMLParser):
    """Reads HTML strictly: every element is closed, and in the right order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.roots = 0
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), (tag, attrs)
        self.found.append((tag, dict(attrs)))
        self.roots += not self.open
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def fragments(view: RunView) -> Iterator[Fragment]:
    yield render_head(view.head)
    yield render_charts(view)
    yield from map(render_item, view.items)


@pytest.fixture(scope="module")
def hostile_views() -> list[RunView]:
    return [read_run(log, Reading(key=f"r{n}")) for n, log in enumerate(hostile_logs())]


def test_hostile_texts_make_no_element_and_no_attribute(hostile_views: list[RunView]) -> None:
    for view in hostile_views:
        for fragment in fragments(view):
            tags = Tags(fragment.html)
            assert tags.roots == 1
            assert tags.found[0][1]["id"] == fragment.id
            for tag, attributes in tags.found:
                assert tag in OURS
                assert not {"style", "src", "srcset", "action", "formaction"} & set(attributes)
                assert [name for name in attributes if name.startswith("on") or not NAMES.fullmatch(name)] == []
                assert str(attributes.get("href", "#")).startswith("#")


def test_hostile_texts_are_all_there(hostile_views: list[RunView]) -> None:
    """A few fields are on no page, so each text is put into another field the second time."""
    told = []
    others = [read_run(log, Reading()) for log in hostile_logs(17)]
    for view in (*hostile_views, *others):
        for fragment in fragments(view):
            told += ["".join(Tags(fragment.html).text), *fragment.texts.values()]
    shown = "\n".join(told)
    assert [text for text in TEXTS if clean(text) not in shown] == []


def test_no_element_is_twice_on_a_page(hostile_views: list[RunView]) -> None:
    ids = [
        str(attributes["id"])
        for view in hostile_views
        for fragment in fragments(view)
        for _, attributes in Tags(fragment.html).found
        if "id" in attributes
    ]
    assert len(set(ids)) == len(ids)


def test_data_never_ends_its_element(hostile_views: list[RunView]) -> None:
    html = page(hostile_views)
    tags = Tags(html)
    assert [tag for tag, _ in tags.found].count("script") == 2
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert block is not None
    assert [run["key"] for run in json.loads(block[1])["runs"]] == [view.head.key for view in hostile_views]


@pytest.mark.parametrize("text", TEXTS)
def test_data_is_what_it_was(text: str) -> None:
    written = as_data({text: [text]})
    assert msgspec.json.decode(written) == {text: [text]}
    assert not re.search(r"</|<!", written)


def test_a_long_text_is_shown_in_part_and_kept_whole() -> None:
    long, lines = "x" * 5_000_000 + "END", "line\n" * 100
    for text in (long, lines):
        run = Run().call("look").start()
        run.tell(ev.CallReturned, step=1, position=0, parts=(Text(text),))
        (step,) = [item for item in read_run(run.log).items if item.id == "step-1"]
        fragment = render_item(step)
        assert fragment.texts == {"call-1-1-result": text}
        assert len(fragment.html) < SHOWN_CHARS + 4_000
        assert 'data-more="call-1-1-result"' in fragment.html


def test_items_can_be_filtered_and_compared() -> None:
    found = {fragment.id: fragment for fragment in map(render_item, read_run(shop(13)).items)}
    assert found["step-12"].tags == ("step", "problem", "tool:get_order", "tool:get_tracking")
    assert found["step-12"].path == ('get_order(order_id="1012") ok', 'get_tracking(number="TRK0") tool_error')
    assert found["step-13"].path == ("Order 1042 was shipped as TRK77 and is in Leipzig.",)
    assert found["start"].tags == ("frame",)


def test_a_page_allows_itself_nothing_but_what_it_holds() -> None:
    html = page([read_run(shop(3))])
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert policy[1].replace("&#39;", "'").startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy[1]
    assert "http:" not in html.replace("http-equiv", "")
    assert "https:" not in html


def test_a_live_page_leaves_the_policy_to_its_server() -> None:
    html = live_page(read_run(shop(3)), csp_nonce="abc", back="/runs")
    assert "Content-Security-Policy" not in html
    assert html.count('nonce="abc"') == 2
    assert '<a href="/runs">' in html


def test_a_page_of_several_runs_has_them_all_and_their_children_under_their_calls() -> None:
    logs = family()
    views = [read_run(logs["inner"], Reading(key="r3", parent="r2-call-1-1"))]
    views += [read_run(logs[name], Reading(key=key)) for name, key in (("middle", "r2"), ("outer", "r1"))]
    html = page(views)
    tags = Tags(html)
    rows = [attributes["data-key"] for tag, attributes in tags.found if tag == "tr" and "data-key" in attributes]
    assert rows == ["r2", "r1"], "what serves a call is under it"
    assert "<title>2 runs</title>" in html


def test_the_page_of_a_run_without_steps_is_a_page() -> None:
    html = page([read_run(Run().log)])
    assert Tags(html).roots == 1
    assert "It has not ended" in html
