"""Whole pages: one file that needs nothing else, and makes no request."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tenlines.report.model import Head, RunView
from tenlines.report.plots import rows_of
from tenlines.report.rendering import (
    as_data,
    css,
    environment,
    render_charts,
    render_head,
    render_item,
    render_overview,
    script,
)
from tenlines.trace.text import one_line


def page(views: Sequence[RunView]) -> str:
    """A page about runs, as one file.

    Args:
        views: The runs, those that are asked for first; behind them those that served their calls (they have a
            `parent`). Where there is more than one, each has a key.

    Raises:
        MissingExtra: Jinja is not installed.
    """
    asked = [view for view in views if not view.parent]
    if len(asked) == 1:
        return _page(views, asked[0], title=_title(asked[0]))
    return _page(views, None, title=f"{len(asked):,} runs")


def live_page(view: RunView, *, csp_nonce: str, back: str = "") -> str:
    """A page about one run that is to be told what changes (`window.tenlines.put`). The policy that goes with it is the
    server's, in a header.

    Args:
        csp_nonce: Of its style and script.
        back: Where the list of runs is.
    """
    return _page([view], view, title=_title(view), nonce=csp_nonce, back=back)


def policy(style: str, code: str) -> str:
    """What the page may do: show its own style, run its own script, and nothing else."""
    rules = [f"style-src '{_hash(style)}'", f"script-src '{_hash(code)}'"]
    return "; ".join(["default-src 'none'", *rules, "img-src data:", "base-uri 'none'", "form-action 'none'"])


def _page(views: Sequence[RunView], shown: RunView | None, *, title: str, nonce: str = "", back: str = "") -> str:
    style, code = css(), script()
    asked = [view.head for view in views if not view.parent]
    parts = [_part(view) for view in views]
    mine = next((part for part, view in zip(parts, views, strict=True) if view is shown), None)
    shown_key = None if shown is None else shown.head.key
    template = environment().get_template("page.html")
    return template.render(
        title=title,
        policy="" if nonce else policy(style, code),
        nonce=nonce,
        css=style,
        script=code,
        is_live=bool(nonce),
        is_many=shown is None,
        back=back,
        run_id=shown.head.run_id if shown is not None else "",
        overview=render_overview(asked, title, _summary(asked)) if shown is None else "",
        head=mine["head"].html if mine else "",
        charts=mine["charts"].html if mine else "",
        data=as_data({"runs": [_without_twice(part) if part is mine else part for part in parts], "shown": shown_key}),
    )


def _part(view: RunView) -> dict[str, Any]:
    """What the script knows of a run."""
    head = view.head
    return {
        "key": head.key,
        "run_id": head.run_id,
        "parent": view.parent,
        "facts": [head.status, *(cell.text for cell in rows_of([head])[0].numbers[:-1])],
        "head": render_head(head),
        "charts": render_charts(view),
        "items": [render_item(item) for item in view.items],
    }


def _without_twice(part: dict[str, Any]) -> dict[str, Any]:
    """What the page shows from the beginning need not be in its data too."""
    return {name: value for name, value in part.items() if name not in ("head", "charts")}


def _summary(heads: Sequence[Head]) -> str:
    """How many ended how."""
    counts = Counter(head.status for head in heads)
    return ", ".join(f"{count:,} {status}" for status, count in counts.most_common())


def _title(view: RunView) -> str:
    return f"{one_line(view.head.task, 60)} · {view.head.status}"


def _hash(text: str) -> str:
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()
