"""`tenlines trace`: the spans of past runs, sent to a collector or printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tenlines.cli import hiding, telemetry
from tenlines.cli import options as opt
from tenlines.errors import ConfigError, InvalidEvent, JournalDamaged

if TYPE_CHECKING:
    from tenlines.core.events import AnyEvent
    from tenlines.ports import Journal
    from tenlines.trace.conventions import Vintage
    from tenlines.trace.redaction import Redaction

AT_ONCE = 100
"""Spans in one request."""

Runs = Annotated[
    list[str], typer.Argument(metavar="RUN", help="Ids, beginnings of them, or `last`.", show_default=False)
]
Lines = Annotated[bool, typer.Option("--json", help="Print the spans, one JSON a line; send nothing.")]
Content = Annotated[
    bool | None,
    typer.Option(
        "--content/--no-content",
        help="With what was said: messages, arguments, results. [$OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT]",
        show_default=False,
    ),
]


def trace(
    run: Runs,
    content: Content = None,
    redact: hiding.Names = None,
    redact_with: hiding.With = None,
    no_redact: hiding.Off = False,
    journal: opt.JournalName = None,
    json: Lines = False,
) -> None:
    """Send the spans of past runs to an OpenTelemetry collector, with those of the runs under their calls.

    A run has the same spans however often it is sent: their ids follow from its journal. What `run --otel` could not
    send, because nobody listened or the process died, is sent by this.

    Where to: $OTEL_EXPORTER_OTLP_ENDPOINT (http://localhost:4318), _HEADERS, OTEL_SERVICE_NAME and the other standard
    variables. Needs pip install 'tenlines[otel]'; --json does not.

    \b
    Examples:
      tenlines trace last
      tenlines trace k2v9 p3xm --content --redact email
      OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:6006 tenlines trace last
      tenlines trace last --json | jq -r '[.name, .end - .start] | @tsv'
    """
    from tenlines.trace.conventions import vintage_of, wants_content

    redaction = hiding.usual(redact, redact_with, no_redact)
    said = wants_content(os.environ) if content is None else content
    store = opt.open_existing(journal)
    found = list(dict.fromkeys(opt.find_run(store, one) for one in run))
    for one in {one.run_id for one in store.runs(status="open")} & set(found):
        typer.echo(f"run {one} is open; what there is of it so far", err=True)
    try:
        if json:
            _print(store, found, vintage_of(os.environ), said, redaction)
        else:
            raise typer.Exit(_send(store, found, said, redaction))
    except InvalidEvent as error:
        raise JournalDamaged(f"what the journal has is not the log of a run: {error}; see `tenlines doctor`") from error


def _print(store: Journal, found: Sequence[str], vintage: Vintage, said: bool, redaction: Redaction) -> None:
    from tenlines.cli.screen import json_line
    from tenlines.trace import past

    for log in _logs(store, found):
        redaction.learn(log)
        for span in past.records(past.changes(log, vintage, content=said, redaction=redaction)):
            typer.echo(json_line(span, sys.stdout))


def _logs(store: Journal, found: Sequence[str]) -> Iterator[list[AnyEvent]]:
    """The logs of the runs and of those under them, each once."""
    from tenlines.core.events import RunStarted
    from tenlines.trace.past import family

    known: set[str] = set()
    for run_id in found:
        for log in family(store, run_id):
            start = log[0]
            if isinstance(start, RunStarted) and start.run_id not in known:
                known.add(start.run_id)
                yield log


def _send(store: Journal, found: Sequence[str], said: bool, redaction: Redaction) -> int:
    """Send them; returns the exit code."""
    if telemetry.is_disabled(os.environ):
        raise ConfigError("OTEL_SDK_DISABLED is set, so nothing can be sent: unset it, or print the spans with --json")
    target = telemetry.read_target(os.environ)
    exporter = telemetry.span_exporter(target)
    if exporter is None:
        raise ConfigError("OTEL_TRACES_EXPORTER=none: nothing would be sent; unset it, or print the spans with --json")
    if target.traces == "otlp" and (why := telemetry.unreachable(target)):
        typer.echo(f"nothing was sent: nobody can be reached at {target.address}: {why}", err=True)
        return 1
    from tenlines.trace.otel import export_run

    with telemetry.Heard() as heard:
        provider = telemetry.directly(exporter, AT_ONCE)
        for run_id in found:
            try:
                export_run(store, run_id, tracer_provider=provider, content=said, redaction=redaction)
            except InvalidEvent as error:
                raise JournalDamaged(
                    f"what the journal has of run {run_id} is not the log of a run: {error}"
                ) from error
        provider.force_flush()
    if exporter.failed:
        typer.echo(f"{exporter.failed} spans were not sent to {target.address}: {heard.last or 'it failed'}", err=True)
        return 1
    typer.echo(f"{exporter.sent} spans were sent to {target.address}", err=True)
    return 0
