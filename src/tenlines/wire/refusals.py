"""A provider's refusal, and the rule of its format that it speaks of."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tenlines.errors import Overloaded, ProtocolRejected, ProviderError

if TYPE_CHECKING:
    from tenlines.wire.format import Format

KIND_WORDS: dict[str, str] = {
    "ROLE-UNKNOWN": "an unknown role",
    "ROLE-SYSTEM": "a system message out of place",
    "ROLE-FIRST": "the first message",
    "ROLE-LAST": "the last message",
    "ROLE-ORDER": "the order of the messages",
    "ID-MISSING": "a call or a result without an id",
    "ID-DUP": "an id that is used twice",
    "ID-CHARSET": "characters of an id",
    "ID-LENGTH": "an id that is too long",
    "ID-PREFIX": "an id of another kind",
    "PAIR-MISSING": "calls without results",
    "PAIR-GAP": "something between calls and their results",
    "PAIR-SPLIT": "results in several messages",
    "PAIR-ORDER": "something before the results",
    "PAIR-DUP": "two results for one call",
    "PAIR-ORPHAN": "results without a call",
    "PAIR-NAME": "the name of a result",
    "ARGS-TYPE": "a value of another type",
    "ARGS-JSON": "arguments that are not JSON",
    "NAME-CHARSET": "characters of a name",
    "NAME-LENGTH": "a name that is too long",
    "TOOLS-ABSENT": "calls in the history and no tools",
    "TOOLS-COUNT": "the number of tools",
    "EMPTY-TEXT": "an empty text",
    "EMPTY-MSG": "an empty message",
    "ERR-EMPTY": "a failed result without text",
    "WS-TRAILING": "white space at the end",
    "MEDIA-PLACE": "an image or a file out of place",
    "MEDIA-LIMIT": "too many or too large images or files",
    "RSN-MISSING": "reasoning that is missing",
    "RSN-FOREIGN": "reasoning of another model",
    "RSN-UNSIGNED": "reasoning without a signature",
    "RSN-EDITED": "reasoning that was changed",
    "RSN-PREFIX": "reasoning after a changed beginning",
    "SCHEMA-SUBSET": "the schema of a tool",
    "PARAM-COMBO": "parameters that do not go together",
    "CACHE": "marks for the cache",
    "CACHE-BREAK": "a changed beginning",
    "LIMIT": "the size of the request",
}
"""Each canonical kind of violation in a few words."""

_PLACE = re.compile(r"\b(?:messages|input|contents|tools)(?:[.\[]\d[\w.\[\]]*)")
_UNDECIDED = (ProviderError, Overloaded)
"""What may be a refusal in truth. Gateways answer 500 where the provider behind them answered 400."""


def recognise(error: ProviderError, format: Format | None) -> ProviderError:
    """The same error, or a `ProtocolRejected` when its text looks like the refusal of a rule of the format.

    Args:
        error: What an answer stood for; an error that is known to be something else comes back as it is.
        format: The wire format of the request, or None.
    """
    if format is None or type(error) not in _UNDECIDED or error.status in (404, 405, 529):
        return error
    said = str(error)
    found = next((id for pattern, id in format.rejections if re.search(pattern, said, re.IGNORECASE)), "")
    if not found:
        return error
    kind = next((rule.kinds[0] for rule in format.rules if rule.id == found and rule.kinds), "")
    words = f" ({KIND_WORDS[kind]})" if kind in KIND_WORDS else ""
    place = _PLACE.search(said)
    where = f" at {place[0].rstrip('.')}" if place else ""
    text = said.partition(": ")[2] or said
    return ProtocolRejected(
        f"the server refused the request: it looks like {found}{words}{where}: {text}; "
        f"`tenlines rules {found}` explains it",
        rule=found,
        kind=kind,
        status=error.status,
        code=error.code,
    )
