"""What is seen of an answer: a line with ids and nothing of the caller's, and a span in the caller's trace."""

import logging
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.server.running import JSON, aap_error, envelope, lead, running

from forecourt.binding.json_text import encode
from forecourt.server import traces


def test_a_request_is_a_line_with_its_ids_where_that_is_asked_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    # The line is written once the caller has the answer: the server ends first.
    with caplog.at_level(logging.INFO, "forecourt.requests"), running(tmp_path, log={"requests": True}) as agent:
        refused = lead()
        del refused["consent"]
        headers = {**JSON, "X-Request-ID": "proxy-1"}
        error = aap_error(agent.post(encode(envelope(refused)), headers=headers).json())
        agent.post(encode(envelope(refused)), headers={**JSON, "X-Request-ID": "zephyrine@example.com"})
    first, second = (each for each in caplog.records if each.name == "forecourt.requests")
    assert first.__dict__["request_id"] == "proxy-1"
    assert first.__dict__["error_id"] == error["error_id"]
    assert first.__dict__["outcome"] == error["code"]
    assert first.__dict__["skill"] == "lead.submit"
    assert second.__dict__["request_id"].startswith("req_")
    assert all("zephyrine" not in str(each.__dict__).lower() for each in (first, second))


def test_no_request_is_a_line_unless_it_is_asked_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "forecourt.requests"), running(tmp_path) as agent:
        agent.call(lead())
    assert not [each for each in caplog.records if each.name == "forecourt.requests"]


def test_an_answer_is_a_span_in_the_callers_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    assert traces.spans() is None
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    monkeypatch.setattr(trace, "get_tracer", lambda name: provider.get_tracer(name))
    span = traces.spans()
    assert span is not None
    parent = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    span([(b"traceparent", parent), (b"authorization", b"x")], "a2a", "3.1", "inventory.search", "ok", 0.5)
    (seen,) = kept.get_finished_spans()
    assert seen.name == "inventory.search"
    assert seen.context is not None
    assert f"{seen.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert seen.attributes == {"forecourt.binding": "a2a", "forecourt.contract": "3.1", "forecourt.outcome": "ok"}
    assert seen.start_time is not None
    assert seen.end_time is not None
    assert abs(seen.end_time - seen.start_time - 500_000_000) < 1_000_000
