"""schemathesis calls every operation as its description allows and as it does not: no status that is not documented.

It runs from an environment of its own, since it needs another release of jsonschema-rs than Forecourt does: its command
is found by FORECOURT_SCHEMATHESIS or on the path. `FORECOURT_LONG=1` makes some 2,000 examples.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.pap_agent import PAPAgent
from tests.server_process import ServerProcess

COMMAND = os.environ.get("FORECOURT_SCHEMATHESIS") or shutil.which("schemathesis")
LONG = os.environ.get("FORECOURT_LONG") == "1"
EXAMPLES = 400 if LONG else 10
"""For each of the five operations, beside those of the coverage phase."""
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "negative_data_rejection",
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """The demonstration of PAP."""
    process = ServerProcess(tmp_path, pap=True)
    try:
        process.wait()
        yield process
    finally:
        process.stop()


def test_it_finds_no_undocumented_status_and_no_server_error(server: ServerProcess) -> None:
    if COMMAND is None:
        reason = "schemathesis is not here: FORECOURT_SCHEMATHESIS names its command"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    agent = PAPAgent(server).start()
    key = agent.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    environment = {
        "PATH": os.environ["PATH"],
        "PAP_TOKEN": agent.token,
        "PAP_KEY": key,
        "SCHEMATHESIS_HOOKS": "tests.interop.pap_schemathesis_hooks",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    run = subprocess.run(
        [
            COMMAND, "run", f"{server.base_url}/api/openapi.json", "--url", server.base_url,
            "--tls-verify", str(server.folder / "data" / "pap-dev" / "ca.pem"), "--checks", ",".join(CHECKS),
            "--phases", "examples,coverage,fuzzing", "--max-examples", str(EXAMPLES), "--seed", "20260501",
            "--generation-database", "none", "--no-color", "--continue-on-failure",
            "--suppress-health-check", "all", "--warnings", "off",
        ],
        env=environment, cwd=server.folder, capture_output=True, text=True, timeout=3000, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-2000:]
    made = re.search(r"(\d[\d,]*) generated", run.stdout)
    assert made is not None, run.stdout
    assert int(made[1].replace(",", "")) >= (2000 if LONG else 50)
    assert "ERROR" not in server.log
