"""The public names of the buyer's side."""

import subprocess
import sys

import forecourt
import forecourt.client


def test_every_name_is_there_and_the_three_of_the_product_are_these() -> None:
    assert all(hasattr(forecourt.client, name) for name in forecourt.client.__all__)
    assert forecourt.connect is forecourt.client.connect
    assert forecourt.connect_sync is forecourt.client.connect_sync
    assert forecourt.TransportError is forecourt.client.TransportError


def test_the_client_loads_its_http_only_when_it_sends() -> None:
    heavy = ("httpx", "starlette", "uvicorn", "numpy", "personal_agent_protocol", "a2a", "mcp")
    program = f"import sys, forecourt.client; print(*[name for name in {heavy!r} if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.strip() == ""
