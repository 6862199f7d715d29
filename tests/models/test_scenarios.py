"""The scenarios that every client must live through, for the clients of the `openai` and `anthropic` SDKs."""

from __future__ import annotations

from scenarios import Scenarios
from speakers import AnthropicSpeaker, ChatSpeaker, ResponsesSpeaker


class TestChat(Scenarios):
    """OpenAI Chat Completions."""

    speaker = ChatSpeaker()


class TestResponses(Scenarios):
    """OpenAI Responses."""

    speaker = ResponsesSpeaker()


class TestAnthropic(Scenarios):
    """Anthropic Messages."""

    speaker = AnthropicSpeaker()
