"""What a worker counts: instruments of OpenTelemetry, and the page of them that Prometheus reads."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tenlines.errors import MissingExtra
from tenlines.fleet.health import Health
from tenlines.fleet.worker import Turn
from tenlines.ports import Clock, Order, SystemClock

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter, MeterProvider, Observation

METER = "tenlines.fleet"
SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)
STEPS = (0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 20.0, 50.0, 100.0, 200.0)


class Metrics:
    """Counts what a worker does: `Worker(watch=Metrics(health))`.

    What it counts goes to the global meter provider, as the program has set it up, and onto the page for Prometheus.

    Args:
        health: That of the worker.
        clock: Where the time comes from.

    Raises:
        MissingExtra: The OpenTelemetry SDK or its exporter for Prometheus is not installed.
    """

    def __init__(self, health: Health, clock: Clock | None = None) -> None:
        self._clock, self._began = clock or SystemClock(), dict[str, float]()
        self._page = _Page()
        from opentelemetry.metrics import get_meter_provider

        self._all = [Instruments(one, health) for one in (self._page.provider, get_meter_provider())]

    def __call__(self, turn: Turn) -> None:
        """Count a turn."""
        match turn.what:
            case "began":
                self._began[turn.order.run_id] = self._clock.now()
            case "handed back" | "failed":
                lasted_s = self._clock.now() - self._began.pop(turn.order.run_id, self._clock.now())
                for one in self._all:
                    one.ended(turn, lasted_s)
            case _:
                pass
        for one in self._all:
            one.count(turn)

    def page(self, accept: str = "") -> tuple[bytes, str]:
        """Everything, as Prometheus reads it, and its media type.

        Args:
            accept: The forms that whoever asks can read, as the header of that name says them.
        """
        return self._page.read(accept)


class Instruments:
    """The instruments of one provider.

    Args:
        provider: Who collects.
        health: What of it is shown.
    """

    def __init__(self, provider: MeterProvider, health: Health) -> None:
        meter = provider.get_meter(METER, str(getattr(sys.modules.get("tenlines"), "__version__", "")))
        counter, histogram = meter.create_counter, meter.create_histogram
        self._handed_back = counter("tenlines.fleet.handed_back", "{run}", "Runs that were handed back, and why.")
        self._failed = counter("tenlines.fleet.failed", "{turn}", "Turns that failed: the run is tried again.")
        self._set_aside = counter("tenlines.fleet.set_aside", "{run}", "Runs that cost too many workers their lives.")
        self._submitted = counter("tenlines.fleet.submitted", "{run}", "Runs that were begun by a schedule.")
        self._under_way = meter.create_up_down_counter("tenlines.fleet.under_way", "{run}", "Runs that it has now.")
        self._lasted = histogram(
            "tenlines.fleet.turn", "s", "How long a run was kept.", explicit_bucket_boundaries_advisory=SECONDS
        )
        self._waited = histogram(
            "tenlines.fleet.wait",
            "s",
            "From when a run was submitted to when it was first begun with.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self._steps = histogram(
            "tenlines.fleet.turn.steps", "{step}", "Steps of a turn.", explicit_bucket_boundaries_advisory=STEPS
        )
        _observe(meter, health)

    def count(self, turn: Turn) -> None:
        """Count what was done, or could not be done."""
        labels = _labels(turn.order)
        match turn.what:
            case "began":
                self._under_way.add(1, labels)
            case "handed back" if turn.handback is not None:
                self._handed_back.add(1, labels | {"why": turn.handback.why, "status": turn.handback.status})
            case "failed":
                self._failed.add(1, labels)
            case "set aside":
                self._set_aside.add(1, labels)
            case "submitted":
                self._submitted.add(1, labels)

    def ended(self, turn: Turn, lasted_s: float) -> None:
        """A turn is over."""
        labels = _labels(turn.order)
        self._under_way.add(-1, labels)
        self._lasted.record(lasted_s, labels)
        self._steps.record(turn.steps, labels)
        if turn.waited_s is not None:
            self._waited.record(turn.waited_s, labels)


def _observe(meter: Meter, health: Health) -> None:
    """What is looked at when somebody collects."""
    from opentelemetry.metrics import Observation

    def leaving(_: object) -> Iterable[Observation]:
        return [Observation(int(health.is_leaving()))]

    def answering(_: object) -> Iterable[Observation]:
        return [Observation(int(not one.why_not()), {"of": name}) for name, one in health.answering.items()]

    def missed(_: object) -> Iterable[Observation]:
        return [Observation(one.missed, {"of": name}) for name, one in health.answering.items()]

    gauge = meter.create_observable_gauge
    gauge("tenlines.fleet.draining", [leaving], description="Whether it hands its runs back and takes no more.")
    gauge("tenlines.fleet.answering", [answering], description="Whether the journal and the engine answer.")
    meter.create_observable_counter(
        "tenlines.fleet.missed", [missed], "{look}", "Looks at the journal and the engine that were not answered."
    )


def _labels(order: Order) -> dict[str, str]:
    return {"agent": order.agent, "version": order.version, "queue": order.queue}


class _Page:
    """All that is counted, with what the system knows of the process, as Prometheus reads it."""

    def __init__(self) -> None:
        try:
            from opentelemetry.exporter.prometheus import PrometheusMetricReader
            from opentelemetry.sdk.metrics import MeterProvider
            from prometheus_client import CollectorRegistry, ProcessCollector
        except ImportError as error:
            raise MissingExtra("metrics", "fleet") from error
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        reader = PrometheusMetricReader(disable_target_info=True, scope_info_enabled=False, registry=self._registry)
        self.provider: MeterProvider = MeterProvider([reader], shutdown_on_exit=False)

    def read(self, accept: str) -> tuple[bytes, str]:
        from prometheus_client.exposition import choose_encoder

        encode, media_type = choose_encoder(accept)
        return encode(self._registry), media_type
