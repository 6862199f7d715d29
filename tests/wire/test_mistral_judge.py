"""Our checker and the open validator, on bodies that are broken in every way; and what becomes of them by a repair."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mistral_judge import judged

from tenlines.wire.checking import check
from tenlines.wire.mistral import rules
from tenlines.wire.mistral.format import FORMAT
from tenlines.wire.repairing import repair

IDS = st.sampled_from(["aaaaaaaa1", "aaaaaaaa2", "b", "null", "call_1"])
TEXTS = st.sampled_from(["", "x", "y"])
CALLS = st.fixed_dictionaries(
    {
        "id": IDS,
        "function": st.fixed_dictionaries(
            {"name": st.sampled_from(["f", "f", "g.h"]), "arguments": st.sampled_from(["{}", "{", "", {"a": 1}])}
        ),
    }
)
THOUGHT: Any = {"type": "thinking", "thinking": [{"type": "text", "text": "h"}]}
ASSISTANT = st.fixed_dictionaries(
    {"role": st.just("assistant")},
    optional={
        "content": st.one_of(TEXTS, st.just([THOUGHT])),
        "tool_calls": st.lists(CALLS, max_size=2),
        "prefix": st.booleans(),
    },
)
CONTENT = st.one_of(TEXTS, st.just([rules.IMAGE]))
RESULT = st.fixed_dictionaries(
    {"role": st.just("tool"), "content": CONTENT, "tool_call_id": IDS}, optional={"name": st.just("f")}
)
MESSAGES = st.one_of(
    ASSISTANT,
    ASSISTANT,
    st.fixed_dictionaries({"role": st.just("user"), "content": CONTENT}),
    RESULT,
    RESULT,
    st.fixed_dictionaries({"role": st.just("system"), "content": TEXTS}),
)
TOOLS = st.sampled_from([rules.tool(), rules.tool("g.h"), rules.tool("f", {"type": "x"})])
BODIES = st.fixed_dictionaries(
    {"model": st.just("m"), "messages": st.lists(MESSAGES, max_size=6)}, optional={"tools": st.lists(TOOLS, max_size=2)}
)


@pytest.mark.slow
@given(BODIES, st.sampled_from(["v3", "v7", "v11", "v13", "v15"]))
def test_we_agree_with_the_open_validator(body: Any, version: str) -> None:
    """But for the very first message, whose calls, or whose being a result, it does not look at."""
    profile = FORMAT.profile({"tokenizer": version})
    found = check(body, FORMAT, profile)
    said = judged(body, version)
    if not said:
        assert all(one.path.startswith("messages[0]") for one in found), found
    else:
        assert found, said


@pytest.mark.slow
@given(BODIES, st.sampled_from(["v3", "v7", "v11", "v13", "v15"]))
def test_what_was_repaired_the_open_validator_takes(body: Any, version: str) -> None:
    profile = FORMAT.profile({"tokenizer": version})
    repaired = repair(body, FORMAT, profile).body
    assert check(repaired, FORMAT, profile) == []
    assert judged(repaired, version) == ""
