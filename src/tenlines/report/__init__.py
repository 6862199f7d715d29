"""Runs as pages: events -> a view (plain data, `model`) -> HTML.

```text
reading.py    Reading: takes the events of one run as they come; gives the view of it, and what changed
model.py      the view: Head, items (StartItem, StepItem, RemarkItem, EndItem), Series, RunView
rendering.py  the view as HTML: fragments, style sheet, script
pages.py      whole pages: one file that needs nothing else
svg.py, charts.py, lanes.py, plots.py   drawings
```

Made for two uses. **A file**: `page([read_run(events), ...])` is a whole page that makes no request. **A live page**:
keep a `Reading`, give it each event, and replace what it says changed, by the id of the element:

```python
reading = Reading(redaction)
for event in journal.read(run_id, from_seq):
    for id in reading.take(event):
        send(render_item(reading.item(id)))       # Fragment: id, html, texts, tags, path
send(render_head(reading.head()))                  # id "head"
send(render_charts(reading.view()))                # id "charts": a few times a minute is enough
```

The live page itself is `live_page(reading.view(), csp_nonce=...)`; its script (`script()`) takes fragments, as JSON or
as objects, from `window.tenlines.put(fragment)`: an item that is there is replaced, a new one is put before the `end`,
`head` and `charts` are replaced where they stand. What was unfolded stays so. Ids: `head`, `charts`, `start`,
`step-7`, `call-7-2` (inside its step), `remark-3`, `end`.
"""

from tenlines.report.model import ChildRef, Item, RunView
from tenlines.report.pages import live_page, page
from tenlines.report.reading import Reading, read_run
from tenlines.report.rendering import Fragment, css, render_charts, render_head, render_item, script

__all__ = [
    "ChildRef",
    "Fragment",
    "Item",
    "Reading",
    "RunView",
    "css",
    "live_page",
    "page",
    "read_run",
    "render_charts",
    "render_head",
    "render_item",
    "script",
]
