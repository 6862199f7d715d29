"""The view as HTML: whole pages and the fragments that they are made of. Everything is escaped by Jinja."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tenlines.errors import MissingExtra
from tenlines.report.charts import charts_of
from tenlines.report.model import Head, Item, RemarkItem, RunView, StartItem, StepItem
from tenlines.report.plots import COLUMNS, distributions, pair_of, rows_of
from tenlines.trace.text import one_line

if TYPE_CHECKING:
    from jinja2 import Environment, Template

SHOWN_CHARS = 2_000
"""Longest text that is put into the page whole; of a longer one the beginning, until somebody asks for all."""
SHOWN_LINES = 30


class Fragment(msgspec.Struct, frozen=True, gc=False):
    """A piece of HTML with one element, of which `id` is the id."""

    id: str
    html: str
    texts: Mapping[str, str] = {}
    """The long texts of it, by the `data-more` of the button that shows them."""
    tags: tuple[str, ...] = ()
    """What it can be filtered by: `step`, `remark`, `problem`, `tool:NAME`."""
    path: tuple[str, ...] = ()
    """What the step did, for comparing runs: its calls, or what it said."""


class Folded(NamedTuple):
    """A text as it is shown at first."""

    shown: str
    length: int
    """Of the whole, where only a part is shown."""


class _Texts:
    """Keeps the whole of the texts of which a template shows the beginning."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def fold(self, id: str, text: str) -> Folded:
        """The beginning of a text, in whole lines where it has lines."""
        shown = text[:SHOWN_CHARS]
        lines = shown.split("\n")
        if len(lines) > SHOWN_LINES:
            shown = "\n".join(lines[:SHOWN_LINES])
        if len(shown) == len(text):
            return Folded(text, 0)
        self.kept[id] = text
        return Folded(shown + "…", len(text))


def render_item(item: Item) -> Fragment:
    """One item of the story.

    Raises:
        MissingExtra: Jinja is not installed.
    """
    texts = _Texts()
    kind = type(item).__name__
    macros: Any = _template("items.html").make_module({"fold": texts.fold})
    html = str(macros.any(kind, item))
    return Fragment(item.id, html.strip(), texts.kept, tuple(_tags(item)), _path(item))


def render_head(head: Head) -> Fragment:
    """The head and its totals."""
    texts = _Texts()
    html = _template("head.html").render(head=head, fold=texts.fold)
    return Fragment(_within(head.key, "head"), html.strip(), texts.kept)


def render_charts(view: RunView) -> Fragment:
    """The drawings of a run."""
    id = _within(view.head.key, "charts")
    macros: Any = _template("charts.html").module
    return Fragment(id, str(macros.figures(charts_of(view), id)).strip())


def render_overview(heads: Sequence[Head], title: str, summary: str) -> str:
    """The table of several runs, how they are distributed, and the place where two are compared."""
    return _template("overview.html").render(
        title=title,
        summary=summary,
        columns=COLUMNS,
        rows=rows_of(heads),
        pair=pair_of(heads),
        charts=distributions(heads),
    )


def css() -> str:
    """The style sheet of all pages."""
    return _asset("page.css")


SCRIPTS = ("store.js", "texts.js", "story.js", "search.js", "tables.js", "compare.js", "keys.js", "page.js")


def script() -> str:
    """The script of all pages."""
    return "(() => {\n'use strict';\n" + "\n".join(map(_asset, SCRIPTS)) + "\n})();\n"


# --- pieces -----------------------------------------------------------------------------------------------


def templates(package: str, feature: str, extra: str) -> Environment:
    """Where the templates of a package are read and filled.

    Args:
        feature: What needs them, and the `extra` that it comes with, for whoever has not installed it.

    Raises:
        MissingExtra: Jinja is not installed.
    """
    try:
        import jinja2
    except ImportError as error:
        raise MissingExtra(feature, extra) from error
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: (files(package) / "templates" / name).read_text("utf-8")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def environment() -> Environment:
    """The templates of reports."""
    return templates("tenlines.report", "a page", "report")


@cache
def _template(name: str) -> Template:
    return environment().get_template(name)


def _asset(name: str) -> str:
    return (files("tenlines.report") / "assets" / name).read_text("utf-8")


def _within(key: str, name: str) -> str:
    return f"{key}-{name}" if key else name


def _tags(item: Item) -> list[str]:
    match item:
        case StepItem(calls=calls, tone=tone):
            tools = dict.fromkeys(f"tool:{call.name}" for call in calls)
            return ["step", *(["problem"] if tone in ("bad", "warn") else []), *tools]
        case RemarkItem(tone=tone):
            return ["remark", *(["problem"] if tone in ("bad", "warn") else [])]
        case StartItem():
            return ["frame"]
        case _:
            return ["frame", *(["problem"] if item.tone == "bad" else [])]


def _path(item: Item) -> tuple[str, ...]:
    if not isinstance(item, StepItem):
        return ()
    if item.calls:
        return tuple(f"{call.line} {call.standing}" for call in item.calls)
    return (one_line(item.text, 200),)


def as_data(value: Any) -> str:
    """A value as JSON that can stand in a `script` element: nothing in it ends the element."""
    return msgspec.json.encode(value).decode().replace("</", "<\\/").replace("<!", "<\\u0021")
