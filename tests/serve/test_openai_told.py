"""What is said of a run, however its replies come."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenlines import Reply
from tenlines.core import events as ev
from tenlines.core.transcript import ToolCall
from tenlines.ports import Delta
from tenlines.serve.openai_told import Teller
from tenlines.trace.redaction import NONE

texts = st.text(st.characters(codec=None), max_size=12)


@pytest.mark.slow
@given(st.lists(st.tuples(texts, st.lists(texts, max_size=4), st.booleans()), max_size=4), st.booleans(), texts)
@settings(max_examples=150, deadline=None)
def test_however_replies_come_what_was_said_ends_with_the_answer(steps: Any, shows: bool, answer: str) -> None:
    teller, said = Teller(shows, NONE), []
    for number, (text, pieces, is_whole) in enumerate(steps, 1):
        said += teller.take(ev.StepStarted(seq=0, at=0.0, step=number, attempt=1, reserved=ev.Reservation()))
        for piece in [text] if is_whole else pieces:
            said += teller.take(Delta(number, piece))
        reply = Reply(text, (ToolCall("c", "look", "{}"),))
        said += teller.take(ev.ModelReplied(seq=0, at=0.0, step=number, reply=reply))
    before = "".join(one.content for one in said)
    said += teller.end(answer)
    whole = "".join(one.content for one in said)
    whole.encode()  # halves of characters are not passed on
    wanted = answer.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert whole.endswith(wanted)
    assert shows or (before, whole) == ("", wanted)
