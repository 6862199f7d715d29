"""How spans, attributes and metrics are called: the one table of names.

OpenTelemetry's conventions for generative AI were released last in version 1.41 (`released`) and go on in a repository
of their own, without a release so far (`latest`). Both are in development: names change, and they change here alone.
What the conventions have no name for begins with `tenlines.`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias

from tenlines.ports import plain_name

Vintage: TypeAlias = Literal["released", "latest"]
VINTAGES: tuple[Vintage, ...] = ("released", "latest")

OPT_IN = "OTEL_SEMCONV_STABILITY_OPT_IN"
"""Comma-separated; with `gen_ai_latest_experimental` in it, the latest names are used."""
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""Whether what was said is exported: `true`, `SPAN_ONLY` or `SPAN_AND_EVENT`. Any other value means that it is not."""


class Spelling(NamedTuple):
    """A name in both vintages; "" where one has none."""

    released: str
    latest: str

    def of(self, vintage: Vintage) -> str:
        """The name in one of them."""
        return self.released if vintage == "released" else self.latest


def _same(name: str) -> Spelling:
    return Spelling(name, name)


class Name(Enum):
    """Every attribute that is written."""

    __hash__ = object.__hash__  # members are looked up some fifty times a step, and hash their names in Python else

    # what it is
    OPERATION = _same("gen_ai.operation.name")
    PROVIDER = _same("gen_ai.provider.name")
    AGENT_PROVIDER = Spelling("gen_ai.provider.name", "")  # of `invoke_agent`, where the latest names have none
    AGENT_NAME = _same("gen_ai.agent.name")
    CONVERSATION = _same("gen_ai.conversation.id")
    COMPACTED = Spelling("", "gen_ai.conversation.compacted")
    SERVER_ADDRESS = _same("server.address")
    SERVER_PORT = _same("server.port")
    ERROR_TYPE = _same("error.type")
    HTTP_STATUS = _same("http.response.status_code")

    # requests
    REQUEST_MODEL = _same("gen_ai.request.model")
    MAX_TOKENS = _same("gen_ai.request.max_tokens")
    RESPONSE_MODEL = _same("gen_ai.response.model")
    FINISH_REASONS = _same("gen_ai.response.finish_reasons")
    INPUT_TOKENS = _same("gen_ai.usage.input_tokens")
    OUTPUT_TOKENS = _same("gen_ai.usage.output_tokens")
    CACHE_READ = _same("gen_ai.usage.cache_read.input_tokens")
    CACHE_WRITE = Spelling("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_write.input_tokens")
    REASONING = _same("gen_ai.usage.reasoning.output_tokens")
    AGENT_CACHE_READ = Spelling("gen_ai.usage.cache_read.input_tokens", "")
    AGENT_CACHE_WRITE = Spelling("gen_ai.usage.cache_creation.input_tokens", "")

    # tools
    TOOL_NAME = _same("gen_ai.tool.name")
    TOOL_TYPE = _same("gen_ai.tool.type")
    TOOL_DESCRIPTION = _same("gen_ai.tool.description")
    TOOL_CALL_ID = _same("gen_ai.tool.call.id")

    # content, only where it was asked for
    SYSTEM_INSTRUCTIONS = _same("gen_ai.system_instructions")
    INPUT_MESSAGES = _same("gen_ai.input.messages")
    OUTPUT_MESSAGES = _same("gen_ai.output.messages")
    TOOL_DEFINITIONS = _same("gen_ai.tool.definitions")
    TOOL_ARGUMENTS = _same("gen_ai.tool.call.arguments")
    TOOL_RESULT = _same("gen_ai.tool.call.result")
    SAID = _same("tenlines.content")

    # metrics only
    TOKEN_TYPE = Spelling("gen_ai.token.type", "")
    TOKEN_MODALITY = Spelling("", "gen_ai.token.modality")

    # what the conventions have no name for
    RUN_ID = _same("tenlines.run.id")
    STATUS = _same("tenlines.run.status")
    STEPS = _same("tenlines.run.steps")
    REQUESTS = _same("tenlines.run.requests")
    CALLS = _same("tenlines.run.tool_calls")
    RETRIES = _same("tenlines.run.retries")
    TURN = _same("tenlines.run.turn")
    ORIGIN = _same("tenlines.run.origin")
    PARENT_CALL = _same("tenlines.run.parent_call")
    TAKEN_UP = _same("tenlines.run.taken_up")
    STEP = _same("tenlines.step")
    ATTEMPT = _same("tenlines.attempt")
    SUMMARY = _same("tenlines.summary")
    CHANGED = _same("tenlines.prefix.changed")
    RETRYABLE = _same("tenlines.retryable")
    RULE = _same("tenlines.rule")
    DOLLARS = _same("tenlines.dollars")
    LEFT_STEPS = _same("tenlines.left.steps")
    LEFT_CALLS = _same("tenlines.left.tool_calls")
    LEFT_TOKENS = _same("tenlines.left.tokens")
    LEFT_DOLLARS = _same("tenlines.left.dollars")
    LEFT_SECONDS = _same("tenlines.left.seconds")
    CALL = _same("tenlines.call")
    OUTCOME = _same("tenlines.outcome")
    UNDO = _same("tenlines.undo")
    READ_ONLY = _same("tenlines.tool.read_only")
    STARTS = _same("tenlines.call.starts")
    TRUNCATED = _same("tenlines.result.truncated")
    RESULT_CHARS = _same("tenlines.result.chars")
    CHILD_RUNS = _same("tenlines.children.runs")
    CHILD_TOKENS = _same("tenlines.children.tokens")
    CHILD_DOLLARS = _same("tenlines.children.dollars")
    MODE = _same("tenlines.mode")
    BY = _same("tenlines.by")
    REASON = _same("tenlines.reason")
    VERDICT = _same("tenlines.verdict")
    ABOUT = _same("tenlines.about")
    STRATEGY = _same("tenlines.cut.strategy")
    TOKENS_BEFORE = _same("tenlines.cut.tokens_before")
    TOKENS_AFTER = _same("tenlines.cut.tokens_after")
    CUT_WHY = _same("tenlines.cut.why")
    CUT_SAVES = _same("tenlines.cut.saves")
    CUT_COSTS = _same("tenlines.cut.costs")
    CUT_UNIT = _same("tenlines.cut.unit")


def spellings(vintage: Vintage) -> dict[Name, str]:
    """The names that a vintage has."""
    return {name: spelled for name in Name if (spelled := name.value.of(vintage))}


# --- metrics ------------------------------------------------------------------------------------------

Kind: TypeAlias = Literal["histogram", "counter"]
_TOKENS = tuple(4.0**power for power in range(14))
_SECONDS = tuple(0.01 * 2**power for power in range(14))
_RUN_SECONDS = tuple(0.1 * 2**power for power in range(13))
_COUNTS = tuple(2.0**power for power in range(8))


class Instrument(NamedTuple):
    """A metric: its names, and what it is."""

    name: Spelling
    kind: Kind
    unit: str
    what: str
    buckets: tuple[float, ...] = ()


class Metric(Enum):
    """Every metric that is written."""

    TOKENS = Instrument(
        Spelling("gen_ai.client.token.usage", ""), "histogram", "{token}", "Tokens of one request.", _TOKENS
    )
    OPERATION = Instrument(
        Spelling("gen_ai.client.operation.duration", ""), "histogram", "s", "Length of one operation.", _SECONDS
    )
    INFERENCE = Instrument(
        Spelling("", "gen_ai.client.inference.duration"), "histogram", "s", "Length of one request.", _SECONDS
    )
    REQUEST_INPUT = Instrument(
        Spelling("", "gen_ai.client.inference.operation.input_tokens"),
        "histogram",
        "{token}",
        "Input tokens of one request.",
        _TOKENS,
    )
    REQUEST_OUTPUT = Instrument(
        Spelling("", "gen_ai.client.inference.operation.output_tokens"),
        "histogram",
        "{token}",
        "Output tokens of one request.",
        _TOKENS,
    )
    INPUT = Instrument(
        Spelling("", "gen_ai.client.inference.usage.input_tokens"), "counter", "{token}", "Input tokens, cached or not."
    )
    OUTPUT = Instrument(
        Spelling("", "gen_ai.client.inference.usage.output_tokens"),
        "counter",
        "{token}",
        "Output tokens, reasoning included.",
    )
    CACHE_READ = Instrument(
        Spelling("", "gen_ai.client.inference.usage.cache_read.input_tokens"),
        "counter",
        "{token}",
        "Input tokens that came from the provider's cache.",
    )
    CACHE_WRITE = Instrument(
        Spelling("", "gen_ai.client.inference.usage.cache_write.input_tokens"),
        "counter",
        "{token}",
        "Input tokens that were written to the provider's cache.",
    )
    REASONING = Instrument(
        Spelling("", "gen_ai.client.inference.usage.reasoning.output_tokens"),
        "counter",
        "{token}",
        "Output tokens that were reasoning.",
    )
    AGENT = Instrument(
        Spelling("", "gen_ai.invoke_agent.duration"), "histogram", "s", "Length of one run.", _RUN_SECONDS
    )
    AGENT_REQUESTS = Instrument(
        Spelling("", "gen_ai.invoke_agent.inference_calls"),
        "histogram",
        "{inference_call}",
        "Requests of one run.",
        _COUNTS,
    )
    AGENT_CALLS = Instrument(
        Spelling("", "gen_ai.invoke_agent.tool_calls"), "histogram", "{tool_call}", "Tool calls of one run.", _COUNTS
    )
    TOOL = Instrument(Spelling("", "gen_ai.execute_tool.duration"), "histogram", "s", "Length of one call.", _SECONDS)
    DOLLARS = Instrument(_same("tenlines.cost"), "counter", "{dollar}", "What requests cost, where it is known.")


# --- what the environment says --------------------------------------------------------------------------


def vintage_of(environment: Mapping[str, str]) -> Vintage:
    """The names that the standard variable asks for."""
    wanted = {word.strip() for word in environment.get(OPT_IN, "").split(",")}
    return "latest" if "gen_ai_latest_experimental" in wanted else "released"


def wants_content(environment: Mapping[str, str]) -> bool:
    """Whether the standard variable asks for content in spans."""
    return environment.get(CAPTURE, "").strip().lower() in ("true", "1", "span_only", "span_and_event")


# --- models -------------------------------------------------------------------------------------------

PROVIDERS = {
    "google": "gcp.gemini",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "vertex_ai": "gcp.vertex_ai",
    "xai": "x_ai",
    "moonshot": "moonshot_ai",
    "watsonx": "ibm.watsonx.ai",
}
"""First word of a model -> what the conventions call its provider, where that is another word."""


class ModelNames(NamedTuple):
    """A model of the log in the words of the conventions."""

    provider: str
    model: str
    address: str = ""
    port: int | None = None


def model_names(name: str) -> ModelNames:
    """What the log calls `openai:gpt-5`, `http://host:8080/v1#NAME`, `local:/a/b.gguf`, `function:reply`."""
    name = plain_name(name)
    if name.startswith(("http://", "https://")):
        return _server(name)
    provider, _, model = name.partition(":")
    if provider == "litellm" and "/" in model:
        provider, _, model = model.partition("/")
    if provider == "local":
        model = model.replace("\\", "/").rpartition("/")[2]
    return ModelNames(PROVIDERS.get(provider, provider), model or provider)


def _server(name: str) -> ModelNames:
    """A server that speaks OpenAI's format: that is what it is called after, as the conventions have it."""
    url, _, model = name.partition("#")
    scheme, _, rest = url.partition("://")
    host = rest.partition("/")[0].rpartition("@")[2]  # no name or password
    address, _, port = host.rpartition(":") if host.rpartition(":")[2].isdecimal() else (host, "", "")
    number = int(port) if port else 443 if scheme == "https" else 80
    return ModelNames("openai", model or "default", address.strip("[]"), number)
