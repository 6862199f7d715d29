"""The open validator of Mistral as a judge of request bodies."""

from __future__ import annotations

import json
from typing import Any

from mistral_common.exceptions import MistralCommonException
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import ValidationMode, get_validator
from mistral_common.tokens.tokenizers.base import TokenizerVersion


def judged(body: dict[str, Any], version: str) -> str:
    """What the open validator says to a request; "" when it takes it."""
    plain = json.loads(json.dumps(body))
    for message in plain["messages"]:
        for chunk in message["content"] if isinstance(message.get("content"), list) else []:
            if chunk["type"] == "thinking":  # the validator knows thoughts as one text, the API as a list
                chunk["thinking"] = "".join(one["text"] for one in chunk["thinking"])
    try:
        get_validator(TokenizerVersion(version), ValidationMode.serving).validate_request(
            ChatCompletionRequest.model_validate(plain)
        )
    except MistralCommonException as error:
        return str(error)
    return ""
