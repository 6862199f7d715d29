"""What nobody shall see: secrets are taken out of a log before any view of it is made.

A redaction works on events, so that spans, logs, reports and `show` need no care of their own: what they are given has
no secrets any more. The run itself is never touched. Tools get the real values, and so does the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

import msgspec

from tenlines.core.events import AnyEvent, ToolSpec

REDACTED = "[redacted]"
FAILED = "[redacted: the function that redacts failed]"

SECRET_NAMES = (
    *("api key", "apikey", "token", "secret", "secret key", "password", "passwd", "passphrase", "pin code"),
    *("authorization", "credential", "credentials", "private key", "access key", "cookie", "set cookie"),
)
"""What a value is called that is a secret nearly always. `github_token` and `X-Api-Key` end in one of them, so they are
meant too; `max_tokens` is not."""

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SCHEME = r"(?:Bearer|Basic|Digest|Token)\s+"
_NAME = re.compile(r"(?<![\w-])((?:[A-Za-z][\w-]{0,63}+ ){0,2}[A-Za-z][\w-]{0,63}+)\\*[\"']?\s*[:=]\s*")
"""Something that is given a value: a field, a header, a parameter, up to three words in a sentence."""
_VALUE = re.compile(rf"(\\*[\"'])({_SCHEME})?(.{{0,4096}}?)\1|()({_SCHEME})?([^\s,;&\"'}}\]\\]+)", re.IGNORECASE)
_BEARER = re.compile(r"\b(Bearer|Basic)(\s+)([\w.~+/=-]{8,})", re.IGNORECASE)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_LEARNT_FROM = 8
"""Characters of a secret from which on it is looked for in all other texts too. A shorter one would be found by
chance."""

Thing = TypeVar("Thing")


class Redaction:
    """What is taken out of events, and how.

    Args:
        keys: Names of values that are secrets, in any spelling (`api_key`, `X-Api-Key`, `apiKey`): of fields in
            arguments and results, of headers, and in texts of the kind `name: value` and `name=value`. Such a value is
            also taken out wherever else it stands.
        function: Called with every text; returns it without what shall not be seen. Where it raises, nothing of the
            text is shown.
    """

    def __init__(self, keys: Iterable[str] = SECRET_NAMES, function: Callable[[str], str] | None = None) -> None:
        self._names = frozenset(name for name in map(_plain, keys) if name)
        self._longest = max((name.count(" ") + 1 for name in self._names), default=0)
        self._function = function
        self._learnt: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None

    def __bool__(self) -> bool:
        return bool(self._names) or self._function is not None

    @property
    def known(self) -> int:
        """How many secrets it has found so far. When there are more, what was shown before may hold one of them."""
        return len(self._learnt)

    def learn(self, events: Iterable[AnyEvent]) -> None:
        """Find the secrets of a log, so that they are also taken out where they stand before they are named."""
        for event in events if self._names else ():
            self.of(event)

    def log(self, events: Iterable[AnyEvent]) -> list[AnyEvent]:
        """A whole log without secrets."""
        kept = list(events)
        self.learn(kept)
        return [self.of(event) for event in kept]

    def of(self, thing: Thing) -> Thing:
        """An event, a result of a run, a JSON value, or any other immutable tree without secrets; the very same object
        where it has none."""
        return self._walk(thing) if self else thing

    def text(self, text: str) -> str:
        """A text without secrets. One that is JSON stays JSON."""
        if not self or not text:
            return text
        shown = self._named_out(text) if self._names else text
        if self._function is None:
            return shown
        try:
            return self._function(shown)
        except Exception:  # noqa: BLE001  # foreign code; what it could not look at is not shown
            return FAILED

    # --- how ------------------------------------------------------------------------------------------

    def _named_out(self, text: str) -> str:
        if text[0] in "{[" and (shown := self._inside_json(text)) is not None:
            text = shown
        text = self._without_values(text)
        text = _BEARER.sub(self._replace_bearer, text)
        text = _PRIVATE_KEY.sub(REDACTED, text)
        return text if self._pattern is None else self._pattern.sub(REDACTED, text)

    def _inside_json(self, text: str) -> str | None:
        """A text that is JSON, without secrets; None where there is none, or it is no JSON."""
        try:
            value = msgspec.json.decode(text)
        except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
            return None
        shown = self._walk(value)
        return None if shown is value else msgspec.json.encode(shown).decode()

    def _without_values(self, text: str) -> str:
        """A text without what stands behind the name of a secret."""
        pieces, done = [], 0
        for name in _NAME.finditer(text):
            if name.start() < done or not self._is_secret(name[1]):
                continue
            if value := _VALUE.match(text, name.end()):
                first = 1 if value[1] else 4
                mark, scheme, secret = value.group(first, first + 1, first + 2)
                self._learn(secret)
                pieces += [text[done : name.end()], mark, scheme or "", REDACTED, mark]
                done = value.end()
        return "".join([*pieces, text[done:]])

    def _replace_bearer(self, found: re.Match[str]) -> str:
        self._learn(found[3])
        return f"{found[1]}{found[2]}{REDACTED}"

    def _is_secret(self, name: str) -> bool:
        words = _plain(name).split()
        return any(" ".join(words[-many:]) in self._names for many in range(1, min(len(words), self._longest) + 1))

    def _learn(self, value: str | None) -> None:
        secret = re.sub(f"^{_SCHEME}", "", (value or "").strip(), flags=re.IGNORECASE).rstrip(".!?)")
        if len(secret) < _LEARNT_FROM or secret in self._learnt or secret == REDACTED:
            return
        self._learnt |= {secret}
        longest_first = sorted(self._learnt, key=lambda one: (-len(one), one))
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def _learn_all(self, value: Any) -> None:
        """Everything that stands under the name of a secret."""
        if isinstance(value, str):
            self._learn(value)
        elif isinstance(value, dict | list | tuple):
            for one in value.values() if isinstance(value, dict) else value:
                self._learn_all(one)

    def _walk(self, thing: Thing, *, by_name: bool = True) -> Thing:
        """A copy without secrets; the thing itself where it has none."""
        found: Any = thing
        if isinstance(thing, str):
            found = self.text(thing)
        elif isinstance(thing, msgspec.Struct):
            found = self._walk_struct(thing)
        elif isinstance(thing, dict):
            found = {self._key(key): self._walk_field(key, one, by_name=by_name) for key, one in thing.items()}
        elif isinstance(thing, list | tuple):
            found = [self._walk(one, by_name=by_name) for one in thing]
        else:
            return thing
        if _same(found, thing):
            return thing
        changed: Any = tuple(found) if isinstance(thing, tuple) else found
        return cast("Thing", changed)

    def _key(self, key: Any) -> Any:
        return self.text(key) if isinstance(key, str) else key

    def _walk_field(self, key: Any, value: Any, *, by_name: bool) -> Any:
        if by_name and value is not None and isinstance(key, str) and self._is_secret(key):
            self._learn_all(value)
            return REDACTED
        return self._walk(value, by_name=by_name)

    def _walk_struct(self, thing: msgspec.Struct) -> Any:
        # a schema has names too, but no values
        by_name = not isinstance(thing, ToolSpec)
        changed = {}
        for name in thing.__struct_fields__:
            value = getattr(thing, name)
            if isinstance(value, str | msgspec.Struct | dict | list | tuple):
                shown = self._walk(value, by_name=by_name)
                if shown is not value:
                    changed[name] = shown
        return msgspec.structs.replace(thing, **changed) if changed else thing


def _plain(name: str) -> str:
    """A name in small words: `X-Api-Key`, `xApiKey` and `x_api_key` are one."""
    return " ".join(_WORDS.findall(name)).lower()


def _same(found: Any, thing: Any) -> bool:
    """Whether nothing was changed."""
    if isinstance(thing, str):
        return bool(found == thing)
    if isinstance(thing, dict):
        return len(found) == len(thing) and all(found.get(key) is one for key, one in thing.items())
    if isinstance(thing, list | tuple):
        return all(one is other for one, other in zip(found, thing, strict=True))
    return found is thing


NONE = Redaction(())
"""Takes nothing out."""


def read_names(text: str) -> Sequence[str]:
    """Names as a person lists them: `api_key, x-token`."""
    return [name for name in (part.strip() for part in text.split(",")) if name]
