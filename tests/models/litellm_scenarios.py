"""The scenarios for `LiteLLM`. Run in a process of its own by `test_litellm.py`: the library leaves sockets, threads
and event loops behind, which is not allowed in ours."""

from __future__ import annotations

from scenarios import Scenarios
from speakers import ChatSpeaker

from tenlines.models.litellm import LiteLLM
from tenlines.ports import Model


class LiteLLMSpeaker(ChatSpeaker):
    """OpenAI's side, reached through the library."""

    def model(self, url: str) -> Model:
        return LiteLLM("openai/m-1", api_key="k", base_url=f"{url}/v1")


class TestLiteLLM(Scenarios):
    """The library's way to OpenAI-compatible servers."""

    speaker = LiteLLMSpeaker()
