"""`forecourt mcp`: an MCP server on standard input, from local data or for another dealer."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.server_process import DEMO, ServerFarm

from forecourt.cli import main

COMMAND = "from forecourt.cli import main; main()"


def run(*arguments: str, stdin: str = "") -> Result:
    """Run a command in this process, without a configuration of the environment's."""
    return CliRunner().invoke(main, ["mcp", *arguments], input=stdin, env={"FORECOURT_CONFIG": ""})


def answers(result: Result) -> dict[Any, Any]:
    """Return what was written, by id."""
    assert result.exit_code == 0, result.output
    return {answer["id"]: answer for answer in map(json.loads, result.stdout.splitlines())}


def call(name: str, request_id: int, **arguments: Any) -> str:
    params = {"name": name, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}) + "\n"


def test_local_data_are_answered_from(tmp_path: Path) -> None:
    found = answers(run("--data", str(tmp_path), stdin=call("aap_inventory_search", 1) + call("aap_nothing", 2)))
    assert found[1]["result"]["structuredContent"]["data"]["total"] == 554
    assert found[2]["error"]["code"] == -32602


def test_an_older_contract_can_be_chosen(tmp_path: Path) -> None:
    found = answers(run("--data", str(tmp_path), "--contract", "1.1", stdin=call("aap_inventory_search", 1)))
    assert found[1]["result"]["structuredContent"]["data"]["skip"] == 0


def test_the_sellers_of_a_configuration_are_served(tmp_path: Path) -> None:
    (tmp_path / "dealer.json").write_text(json.dumps({"name": "Example Cars", "rooftops": [{"name": "Main"}]}))
    config = tmp_path / "forecourt.toml"
    config.write_text('data = "data"\n[dealer]\nid = "example"\nprofile = "dealer.json"\n')
    found = answers(run("--config", str(config), stdin=call("aap_dealer_information", 1)))
    assert found[1]["result"]["structuredContent"]["data"]["name"] == "Example Cars"


def test_another_dealer_is_passed_on_to(servers: ServerFarm) -> None:
    found = answers(run(servers.get(DEMO).base_url, stdin=call("aap_inventory_vehicle", 1, stock="T12345")))
    assert found[1]["result"]["structuredContent"]["data"]["vin"] == "2HGFE1F78NH000001"


def test_credentials_are_for_another_dealer_alone(tmp_path: Path) -> None:
    result = run("--data", str(tmp_path), "--header", "X-API-Key: fck_example")
    assert (result.exit_code, "--header is for URL" in result.stderr) == (2, True)
    result = run("http://127.0.0.1:9", "--header", "fck_example")
    assert (result.exit_code, "--header is NAME:VALUE" in result.stderr) == (2, True)
    assert "fck_example" not in result.stderr


def test_a_configuration_of_the_environment_does_not_stand_in_the_way(servers: ServerFarm) -> None:
    environment = {"FORECOURT_CONFIG": "/nowhere/forecourt.toml"}
    ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    assert answers(CliRunner().invoke(main, ["mcp", servers.get(DEMO).base_url], input=ping, env=environment)) == {
        1: {"jsonrpc": "2.0", "id": 1, "result": {}}
    }


def test_the_program_ends_with_its_input_and_writes_messages_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", COMMAND, "mcp", "--data", str(tmp_path)]
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    done = subprocess.run(command, input=ping, capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b'{"jsonrpc":"2.0","id":1,"result":{}}\n', b"")


def test_an_interruption_ends_it_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-c", COMMAND, "mcp", "--data", str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 1
        assert process.stderr is not None
        assert process.stderr.read().decode().split() == ["forecourt:", "stopped"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("dealer.example.com",), "URL: not an http or https address"),
        (("https://user:secret@dealer.example.com",), "must not hold a user or a password"),
        (("https://dealer.example.com", "--contract", "1.1"), "another dealer's"),
        (("--contract", "9.9"), "choose one of 1.1, 3.1"),
        (("--config", "/nowhere/forecourt.toml"), "forecourt.toml"),
    ],
)
def test_a_mistake_is_told_in_one_line(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    here = ("--data", str(tmp_path)) if arguments[0] == "--contract" else ()
    result = run(*arguments, *here)
    assert result.exit_code == 2
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "secret" not in result.stderr
