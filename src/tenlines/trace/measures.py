"""What metrics say of spans that have ended."""

from __future__ import annotations

from typing import NamedTuple

from tenlines.trace.changes import Attributes, Begun, Ended, Value
from tenlines.trace.conventions import Metric, Name, Vintage


class Measure(NamedTuple):
    """One value of one metric."""

    metric: Metric
    value: float
    attributes: Attributes


_SHARED = (Name.OPERATION, Name.PROVIDER, Name.REQUEST_MODEL, Name.RESPONSE_MODEL)
_SHARED_MORE = (Name.SERVER_ADDRESS, Name.SERVER_PORT, Name.AGENT_NAME, Name.TOOL_NAME, Name.ERROR_TYPE)
_COUNTED = (
    (Metric.INPUT, Name.INPUT_TOKENS),
    (Metric.OUTPUT, Name.OUTPUT_TOKENS),
    (Metric.CACHE_READ, Name.CACHE_READ),
    (Metric.CACHE_WRITE, Name.CACHE_WRITE),
    (Metric.REASONING, Name.REASONING),
)


class Measuring:
    """Measures spans, in the metrics of a vintage.

    Args:
        vintage: Which names are used.
    """

    def __init__(self, vintage: Vintage) -> None:
        self._vintage: Vintage = vintage
        self._spelled = {name: name.value.of(vintage) for name in Name}
        self._kept = [self._spelled[name] for name in (*_SHARED, *_SHARED_MORE)]

    def of(self, begun: Begun, ended: Ended) -> list[Measure]:
        """The measures of one span. Those that the vintage has no metric for are left out."""
        attributes = begun.attributes | ended.attributes
        shared = {name: attributes[name] for name in self._kept if name in attributes}
        seconds = max(0.0, ended.at - begun.at)
        match attributes[self._spelled[Name.OPERATION]]:
            case "chat":
                found = self._request(attributes, shared, seconds)
            case "invoke_agent":
                found = self._run(attributes, shared, seconds)
            case _:
                found = [Measure(Metric.TOOL, seconds, shared)]
        found.append(Measure(Metric.OPERATION, seconds, shared))
        return [one for one in found if one.metric.value.name.of(self._vintage)]

    def _request(self, attributes: Attributes, shared: Attributes, seconds: float) -> list[Measure]:
        without_fault = {name: value for name, value in shared.items() if name != self._spelled[Name.ERROR_TYPE]}
        found = [Measure(Metric.INFERENCE, seconds, shared)]
        for kind, name in (("input", Name.INPUT_TOKENS), ("output", Name.OUTPUT_TOKENS)):
            tokens = _number(attributes.get(self._spelled[name]))
            if tokens is not None:
                typed = without_fault | {Name.TOKEN_TYPE.value.released: kind}
                metric = Metric.REQUEST_INPUT if kind == "input" else Metric.REQUEST_OUTPUT
                found += [Measure(Metric.TOKENS, tokens, typed), Measure(metric, tokens, without_fault)]
        # no provider says of which modality all of its tokens were
        counted = without_fault | {Name.TOKEN_MODALITY.value.latest: "unknown"}
        for metric, name in _COUNTED:
            tokens = _number(attributes.get(self._spelled[name]))
            if tokens is not None:
                found.append(Measure(metric, tokens, counted))
        dollars = _number(attributes.get(self._spelled[Name.DOLLARS]))
        return found if dollars is None else [*found, Measure(Metric.DOLLARS, dollars, without_fault)]

    def _run(self, attributes: Attributes, shared: Attributes, seconds: float) -> list[Measure]:
        found = [Measure(Metric.AGENT, seconds, shared)]
        for metric, name in ((Metric.AGENT_REQUESTS, Name.REQUESTS), (Metric.AGENT_CALLS, Name.CALLS)):
            number = _number(attributes.get(self._spelled[name]))
            if number is not None:
                found.append(Measure(metric, number, shared))
        return found


def _number(value: Value | None) -> float | None:
    return value if isinstance(value, int | float) else None
