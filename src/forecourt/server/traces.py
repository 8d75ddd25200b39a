"""Spans for OpenTelemetry, where it is installed and set up; without it nothing here costs anything."""

import time
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["Spans", "spans"]

Spans = Callable[[Iterable[tuple[bytes, bytes]], str, str, str, str, float], None]
"""Called with (headers, binding, contract, skill, outcome, seconds) once an answer is there."""


def spans() -> Spans | None:
    """Return what makes a span of an answer, None where OpenTelemetry is not installed or nobody set it up.

    It is set up by a program that embeds the application, or by `opentelemetry-instrument forecourt serve`.
    """
    try:
        from opentelemetry import propagate, trace
    except ModuleNotFoundError:
        return None
    provider = trace.get_tracer_provider()
    if type(provider).__name__ == "ProxyTracerProvider":
        return None
    tracer = trace.get_tracer("forecourt")

    def span(
        headers: Iterable[tuple[bytes, bytes]], binding: str, contract: str, skill: str, outcome: str, seconds: float
    ) -> None:
        # Only what continues a caller's trace is taken of its headers.
        carrier = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in headers
            if name in (b"traceparent", b"tracestate")
        }
        end = time.time_ns()
        attributes: dict[str, Any] = {
            "forecourt.binding": binding,
            "forecourt.contract": contract,
            "forecourt.outcome": outcome,
        }
        begun = tracer.start_span(
            skill,
            context=propagate.extract(carrier),
            kind=trace.SpanKind.SERVER,
            start_time=end - int(seconds * 1e9),
            attributes=attributes,
        )
        begun.end(end)

    return span
