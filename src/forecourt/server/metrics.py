"""What a deployment counts, for Prometheus: few series, every label one of a few dozen words that are all ours."""

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from operator import add
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, values
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.gc_collector import GCCollector
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.utils import floatToGoString

__all__ = ["CONTENT_TYPE", "SHARED_FOLDER", "Metrics", "Reading", "count_as", "count_no_more"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

SHARED_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable with the folder in which processes count together."""

_REQUESTS: Final = ("forecourt_requests", "Requests that were answered.")
_REQUEST_WORDS: Final = ("binding", "contract", "skill", "outcome")
_REQUEST_SECONDS: Final = (
    "forecourt_request_seconds",
    "How long answering took, from the last byte of the request to the answer.",
)
_SECONDS_WORDS: Final = ("binding", "skill")

Reading = Mapping[str, float | Mapping[str, float]]
"""What holds at the moment of the question, by name; a mapping inside is {label: value}."""

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_GAUGES: Final[Mapping[str, tuple[str, str | None]]] = {
    "listings": ("Listings that are served.", None),
    "feeds": ("Scheduled feeds by what their last look found.", "outcome"),
    "oldest_import_seconds": ("Age of the scheduled feed's import that is longest ago.", None),
    "deliveries": ("Deliveries of leads that are not done, by state.", "state"),
    "connections": ("Connections that are open.", None),
    "requests_under_way": ("Requests that have come and are not answered yet.", None),
    "limits_outage": ("1 while the shared rate limits cannot be reached.", None),
}


_SUMMED: Final = ("connections", "requests_under_way")
"""Gauges of which each process has its share."""


def count_as(name: str) -> None:
    """Let this process count in the shared folder under a name that no other living process has.

    By default that is its number, and every restart would leave further files to be added up. Under a name that is
    used again, a process goes on from where the one before it ended.
    """
    values.ValueClass = values.MultiProcessValue(lambda: name)  # type: ignore[no-untyped-call]


def count_no_more(name: str, folder: str) -> None:
    """Take what a process that has ended told of its moment out of the folder; what it has counted stays."""
    mark_process_dead(name, folder)  # type: ignore[no-untyped-call]


class Metrics:
    """The counts of one process, or of all workers of one machine where the environment names their common folder."""

    def __init__(self, read: Callable[[], Reading]) -> None:
        """`read` tells what holds at the moment of a question; it must not wait."""
        self._registry = CollectorRegistry(auto_describe=False)
        shared = SHARED_FOLDER in os.environ
        self._answers = _SharedAnswers() if shared else _Answers(self._registry)
        self.answered = self._answers.count
        self._refused = Counter(
            "forecourt_refused",
            "What was turned away or closed to keep within bounds, and pages that were not given.",
            ("reason",),
            registry=None if shared else self._registry,
        )
        if shared:
            MultiProcessCollector(self._registry)  # type: ignore[no-untyped-call]
        else:
            ProcessCollector(registry=self._registry)
            PlatformCollector(registry=self._registry)
            GCCollector(registry=self._registry)
        self._read = read
        self._summed = {
            name: Gauge(f"forecourt_{name}", _GAUGES[name][0], registry=None, multiprocess_mode="livesum")
            for name in (_SUMMED if shared else ())
        }
        self._registry.register(_Gauges(read, frozenset(self._summed)))
        self._words: dict[str, Any] = {}

    def refused(self, reason: str) -> None:
        """Count what was turned away; the reason is a word of ours."""
        found = self._words.get(reason)
        if found is None:
            found = self._words[reason] = self._refused.labels(reason)
        found.inc()

    @property
    def is_shared(self) -> bool:
        """Whether other processes count in the same folder: then `refresh` is to be called every now and then."""
        return bool(self._summed)

    def refresh(self) -> None:
        """Tell the other processes what holds here, of what is summed over all."""
        reading = self._read()
        for name, gauge in self._summed.items():
            value = reading.get(name)
            if isinstance(value, float | int):
                gauge.set(value)

    def text(self) -> bytes:
        """Return everything in Prometheus's text form."""
        self.refresh()
        return generate_latest(self._registry)


class _Answers:
    """Answers counted in this process: in plain numbers, since every request pays for it; put in form when asked."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._tallies: dict[tuple[str, str, str, str], _Tally] = {}
        registry.register(self)

    def count(self, binding: str, contract: str, skill: str, outcome: str, seconds: float) -> None:
        """Count one answer. All four words come from small, closed sets."""
        key = (binding, contract, skill, outcome)
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = _Tally()
        tally.seconds += seconds
        tally.buckets[bisect_left(_SECONDS, seconds)] += 1

    def collect(self) -> Iterable[Metric]:
        """Yield the counter, and the histogram that adds it up."""
        requests = CounterMetricFamily(*_REQUESTS, labels=_REQUEST_WORDS)
        seconds = HistogramMetricFamily(*_REQUEST_SECONDS, labels=_SECONDS_WORDS)
        together: dict[tuple[str, str], _Tally] = {}
        for key, tally in self._tallies.items():
            requests.add_metric(key, sum(tally.buckets))
            binding, _, skill, _ = key
            whole = together.setdefault((binding, skill), _Tally())
            whole.seconds += tally.seconds
            whole.buckets = [*map(add, whole.buckets, tally.buckets)]
        for words, whole in together.items():
            bounds = [*map(floatToGoString, _SECONDS), "+Inf"]
            seconds.add_metric(words, [*zip(bounds, accumulate(whole.buckets), strict=True)], whole.seconds)
        yield requests
        yield seconds


class _Tally:
    """How many answers took how long, by bucket, and how long all of them took, in seconds."""

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(_SECONDS) + 1)
        self.seconds = 0.0


class _SharedAnswers:
    """Answers counted together with other processes, in files of their common folder."""

    def __init__(self) -> None:
        self._requests = Counter(*_REQUESTS, _REQUEST_WORDS, registry=None)
        self._seconds = Histogram(*_REQUEST_SECONDS, _SECONDS_WORDS, buckets=_SECONDS, registry=None)
        self._children: dict[tuple[str, str, str, str], tuple[Any, Any]] = {}

    def count(self, binding: str, contract: str, skill: str, outcome: str, seconds: float) -> None:
        """Count one answer."""
        key = (binding, contract, skill, outcome)
        found = self._children.get(key)
        if found is None:
            found = self._requests.labels(*key), self._seconds.labels(binding, skill)
            self._children[key] = found
        found[0].inc()
        found[1].observe(seconds)


class _Gauges:
    """What is not counted but looked at when somebody asks."""

    def __init__(self, read: Callable[[], Reading], left_out: frozenset[str]) -> None:
        self._read = read
        self._left_out = left_out

    def collect(self) -> Iterable[Metric]:
        """Yield each gauge that there is a value for."""
        reading = self._read()
        for name, (meaning, label) in _GAUGES.items():
            value = reading.get(name)
            if value is None or name in self._left_out:
                continue
            family = GaugeMetricFamily(f"forecourt_{name}", meaning, labels=[label] if label else None)
            for word, number in value.items() if isinstance(value, Mapping) else [("", value)]:
                family.add_metric([word] if label else [], number)
            yield family
