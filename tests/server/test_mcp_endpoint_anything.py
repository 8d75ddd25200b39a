"""Whatever is sent to an MCP endpoint: no server error, nothing of it in the answer or the log, memory steady.

Calls are made from the contracts' schemas and then broken: their values, their envelopes, their headers, their bytes.
`FORECOURT_LONG=1` sends ten thousand of them. A failing one names the seed that makes it again.
"""

import contextlib
import copy
import http.client
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import jsonschema_rs
import pytest
from tests.contract.payload_maker import broken, make
from tests.server_process import ServerProcess

from forecourt.contract import SKILLS
from forecourt.contract.validation import SchemaSet

REQUESTS: Final = 10_000 if os.environ.get("FORECOURT_LONG") == "1" else 2_000
MOST_GROWTH_KB: Final = 24 * 1024
MARK: Final = "Zq\N{SNOWMAN}mark"
SINGLE: Final = "2026-07-28"
META: Final = {"io.modelcontextprotocol/protocolVersion": SINGLE, "io.modelcontextprotocol/clientCapabilities": {}}
METHODS: Final = (
    "initialize", "ping", "server/discover", "tools/list", "resources/list", "resources/templates/list",
    "resources/read", "prompts/list", "prompts/get", "completion/complete", "notifications/initialized", "x" * 5000,
)  # fmt: skip
SECRETS: Final = (MARK, json.dumps(MARK)[1:-1], "ada@example.com", "a.b+c@example.org", "Traceback", 'File \\"', ".py")
SCHEMAS: Final = {
    (version, skill.id): SchemaSet.load(version).inlined(skill.request_schema)
    for version in ("1.1", "3.1")
    for skill in SKILLS.values()
}

Sent = tuple[str, dict[str, str], bytes]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A dealer in a process of its own, whose memory is looked at."""
    process = ServerProcess(tmp_path_factory.mktemp("anything"))
    try:
        process.wait()
        yield process
    finally:
        process.stop()


def made(random: Random) -> Sent:
    """Return a path, headers and a body, most of them wrong somewhere."""
    version = random.choice(("1.1", "3.1"))
    alone = random.random() < 0.5
    message = _call(random, version) if random.random() < 0.7 else _other(random)
    if alone:
        message["params"] = {"_meta": copy.deepcopy(META), **message["params"]}
    headers = _headers(message, alone)
    if random.random() < 0.3:
        message = broken(message, random)
    if random.random() < 0.2:
        name = random.choice(sorted(headers))
        headers[name] = random.choice(("", "x", "*/*", SINGLE, "2025-06-18", "=?base64?x?=", "a" * 3000, "\t", "\xff"))
    body = json.dumps(message, ensure_ascii=random.random() < 0.5).encode(errors="surrogatepass")
    if random.random() < 0.1:
        body = _mangled(body, random)
    return f"/v{version}/mcp", headers, body


def _call(random: Random, version: str) -> dict[str, Any]:
    skill = random.choice(list(SKILLS.values()))
    arguments = make(SCHEMAS[version, skill.id], random)
    if random.random() < 0.6:
        arguments = broken(arguments, random)
    arguments = _marked(arguments, random)
    if random.random() < 0.3:
        arguments = _texts(arguments, random)
    return {
        "jsonrpc": "2.0",
        "id": random.randrange(1 << 40),
        "method": "tools/call",
        "params": {"name": f"aap_{skill.id.replace('.', '_')}", "arguments": arguments},
    }


def _other(random: Random) -> dict[str, Any]:
    params: dict[str, Any] = {
        name: random.choice(("aap://dealer/profile", "find_me_a_car", "", 7, None, [], {"a": [{}]}, "2025-11-25"))
        for name in ("uri", "name", "cursor", "protocolVersion", "capabilities", "clientInfo", "ref")
        if random.random() < 0.4
    }
    return {
        "jsonrpc": "2.0",
        "id": random.choice((1, "a", None, 1.5, True)),
        "method": random.choice(METHODS),
        "params": params,
    }


def _headers(message: dict[str, Any], alone: bool) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if alone:
        named = message["params"].get("uri" if message["method"] == "resources/read" else "name")
        headers |= {"MCP-Protocol-Version": SINGLE, "Mcp-Method": message["method"]}
        headers |= {"Mcp-Name": named} if isinstance(named, str) and named.isascii() else {}
    return headers


def _marked(value: Any, random: Random) -> Any:
    """Put a text that must not come back in the place of some texts."""
    if isinstance(value, list):
        return [_marked(item, random) for item in value]
    if isinstance(value, dict):
        return {name: _marked(member, random) for name, member in value.items()}
    return MARK if isinstance(value, str) and random.random() < 0.15 else value


def _texts(value: Any, random: Random) -> Any:
    """Put JSON texts in the place of some arrays and objects."""
    if isinstance(value, dict):
        value = {name: _texts(member, random) for name, member in value.items()}
    elif isinstance(value, list):
        value = [_texts(item, random) for item in value]
    if isinstance(value, dict | list) and random.random() < 0.4:
        with contextlib.suppress(ValueError):
            return json.dumps(value)
    return value


def _mangled(body: bytes, random: Random) -> bytes:
    place = random.randrange(len(body) + 1)
    changes: list[Callable[[], bytes]] = [
        lambda: body[:place],
        lambda: body[:place] + bytes(random.randrange(256) for _ in range(3)) + body[place:],
        lambda: body + body,
        lambda: b"[" + body + b"]",
        lambda: b"[" * 20_000,
        lambda: body.decode("utf-8", "replace").encode("utf-16"),
        lambda: body.replace(b":", b"::", 1),
        lambda: body.replace(b"0", b"9" * 400, 1),
    ]
    return random.choice(changes)()


def faults(
    path: str, status: int, answer: bytes, outputs: dict[str, dict[str, jsonschema_rs.Draft202012Validator]]
) -> list[str]:
    """Return what is wrong with an answer."""
    found = [f"says {secret!r}" for secret in SECRETS if secret.encode() in answer]
    if status >= http.client.INTERNAL_SERVER_ERROR:
        found.append(f"has the status {status}")
    if status == http.client.ACCEPTED:
        return found + (["has a body"] if answer else [])
    told = json.loads(answer)
    if ("result" in told) == ("error" in told) or told["jsonrpc"] != "2.0":
        found.append("is no JSON-RPC answer")
    content = told.get("result", {}).get("structuredContent")
    if content is not None:
        if json.loads(told["result"]["content"][0]["text"]) != content:
            found.append("says two things")
        if told["result"]["isError"] != (content["type"] == "aap.error"):
            found.append("does not know whether it failed")
        if not any(validator.is_valid(content) for validator in outputs[path].values()):
            found.append("fits no output schema")
    return found


def _kilobytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))


def test_anything_in_gives_an_answer_that_says_nothing_of_it(server: ServerProcess) -> None:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=30)
    outputs = {f"/v{version}/mcp": _outputs(connection, version) for version in ("1.1", "3.1")}
    statuses: dict[int, int] = {}
    memory: list[int] = []
    with contextlib.closing(connection):
        for seed in range(REQUESTS):
            if seed in (REQUESTS // 2, REQUESTS - 1) and Path("/proc").is_dir():
                memory.append(_kilobytes(server.pid))
            path, headers, body = made(Random(seed))
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            answer = response.read()
            statuses[response.status] = statuses.get(response.status, 0) + 1
            assert faults(path, response.status, answer, outputs) == [], (seed, answer[:500])
    # Neither everything refused at the door nor everything let in: both are looked at.
    assert statuses[200] > REQUESTS // 4
    assert statuses[400] > REQUESTS // 10
    if memory:
        assert memory[1] - memory[0] < MOST_GROWTH_KB, memory
    assert not [secret for secret in SECRETS[:4] if secret in server.log]
    assert "Traceback" not in server.log


def _outputs(connection: http.client.HTTPConnection, version: str) -> dict[str, jsonschema_rs.Draft202012Validator]:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    connection.request("POST", f"/v{version}/mcp", body, {"Content-Type": "application/json"})
    tools = json.loads(connection.getresponse().read())["result"]["tools"]
    return {tool["name"]: jsonschema_rs.Draft202012Validator(tool["outputSchema"]) for tool in tools}
