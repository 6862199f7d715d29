"""One run's conversation over Converse."""

from __future__ import annotations

from tenlines.core.effects import CallModel
from tenlines.core.transcript import JsonObject, JsonValue, Reply
from tenlines.wire.bedrock.decoding import Reading, decode_response
from tenlines.wire.bedrock.encoding import Encoder, encode_request, unsaid
from tenlines.wire.bedrock.stream import StreamDecoder
from tenlines.wire.profile import Target


class Talk:
    """How one run's requests are written and its replies are read.

    The format has no word for "no calls", and many families have none for "a call" either. Then the request goes
    without the choice; calls that were not wanted are left out of the reply, and the reply says what could not be said.
    """

    def __init__(self, target: Target) -> None:
        self._target, self._encoder = target, Encoder(target)
        self._reading = Reading(self._encoder.names, target.profile.provider, target.model)

    def request(self, effect: CallModel, stream: bool) -> JsonObject:
        """The body of the next request, as `converse(**body)` and `converse_stream(**body)` take it once
        `binary.to_sdk` has put bytes into it. Which of the two is asked says the stream."""
        choice = effect.tool_choice if effect.tools else "auto"
        remark = ""
        if choice != "none" and unsaid(choice, self._target.profile):
            remark = (
                f"this model cannot be made to call {'a tool' if choice == 'required' else choice}; it was only asked"
            )
        self._reading = self._reading._replace(drops_calls=choice == "none", remark=remark)
        return encode_request(self._encoder, self._target, effect)

    def decode(self, data: JsonValue) -> Reply:
        """The reply in a whole response."""
        return decode_response(data, self._reading)

    def decoder(self) -> StreamDecoder:
        """For one streamed reply."""
        return StreamDecoder(self._reading)
