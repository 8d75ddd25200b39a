"""What is counted, under labels that no caller chooses, and who may read it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.server.running import Reply, RunningAgent, lead, running, search

from forecourt.server import ConfigError, create_app, load
from forecourt.server.metrics import Metrics


def value(text: str, name: str, **labels: str) -> float:
    """Return the value of one series, 0 where there is none."""
    for line in text.splitlines():
        series, _, number = line.rpartition(" ")
        found, _, rest = series.partition("{")
        if found == name and all(f'{label}="{word}"' in rest for label, word in labels.items()):
            return float(number)
    return 0.0


def metrics(agent: RunningAgent, **headers: str) -> Reply:
    """Get the numbers."""
    return agent.get("/metrics", **headers)


def test_answers_are_counted_by_binding_contract_skill_and_outcome(tmp_path: Path) -> None:
    with running(tmp_path) as agent:
        agent.call(search())
        agent.call(search(), "/v1.1/a2a")
        agent.call({**search(), "filters": {"colour": "red"}})
        agent.call({"type": "customer-marked-type"})
        agent.call(lead())
        agent.post(b"{")
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"aap_inventory_search","arguments":{}}}'
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        assert agent.post(body, "/mcp", headers).status == 200
        text = metrics(agent).body.decode()
    requests = "forecourt_requests_total"
    assert value(text, requests, binding="a2a", contract="3.1", skill="inventory.search", outcome="ok") == 1
    assert value(text, requests, contract="1.1", outcome="ok") == 1
    assert value(text, requests, skill="inventory.search", outcome="SCHEMA_VALIDATION_FAILED") == 1
    assert value(text, requests, skill="none", outcome="UNSUPPORTED_SKILL") == 1
    assert value(text, requests, skill="none", outcome="parse_error") == 1
    assert value(text, requests, binding="mcp", skill="inventory.search") == 1
    assert value(text, requests, skill="lead.submit", outcome="ok") == 1
    assert value(text, "forecourt_request_seconds_count", binding="a2a", skill="inventory.search") == 3
    assert value(text, "forecourt_listings") == 554
    assert "customer-marked" not in text
    assert "zephyrine" not in text.lower()


def test_the_numbers_are_shown_to_the_networks_that_may_see_them_and_to_nobody_else(tmp_path: Path) -> None:
    with running(tmp_path) as agent:
        assert metrics(agent).headers["content-type"].startswith("text/plain; version=0.0.4")
        # Behind a proxy that is not known, everybody seems to be on this machine.
        assert metrics(agent, X_Forwarded_For="203.0.113.9").status == 404
        assert metrics(agent, Forwarded="for=203.0.113.9").status == 404
    with running(tmp_path, server={"trusted_proxies": ["127.0.0.1"]}) as agent:
        assert metrics(agent, X_Forwarded_For="203.0.113.9").status == 404
        assert metrics(agent, X_Forwarded_For="10.1.2.3").status == 200
    with running(tmp_path, metrics={"networks": ["192.0.2.0/24"]}) as agent:
        assert metrics(agent).status == 404


@pytest.mark.parametrize("networks", [["everywhere"], ["127.0.0.1", "10.0.0.1/8"]])
def test_what_is_no_network_is_a_mistake_of_the_configuration(networks: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"^metrics\.networks\[\d\]: .* is no address or network$"):
        create_app(load(None, environment={}, metrics={"networks": networks}))


def test_gauges_tell_what_holds_when_they_are_asked() -> None:
    reading: dict[str, Any] = {"listings": 1, "feeds": {"imported": 2, "failed": 1}}
    counted = Metrics(lambda: reading)
    text = counted.text().decode()
    assert value(text, "forecourt_feeds", outcome="failed") == 1
    assert "forecourt_deliveries" not in text
    reading["deliveries"] = {"waiting": 3, "parked": 4}
    assert value(counted.text().decode(), "forecourt_deliveries", state="parked") == 4


def test_processes_that_count_together_are_summed(tmp_path: Path) -> None:
    script = (
        "from forecourt.server.metrics import Metrics\n"
        "import sys\n"
        "metrics = Metrics(lambda: {'connections': 3, 'requests_under_way': 1.0, 'listings': 7})\n"
        "metrics.refused('headers')\n"
        "metrics.refresh()\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "print(metrics.text().decode())\n"
    )
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        for _ in range(2)
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    text = started[0].communicate(b"\n", 20)[0].decode()
    started[1].communicate(b"\n", 20)
    assert value(text, "forecourt_connections") == 6
    assert value(text, "forecourt_requests_under_way") == 2
    assert value(text, "forecourt_refused_total", reason="headers") == 2
    assert value(text, "forecourt_listings") == 7
