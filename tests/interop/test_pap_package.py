"""personal-agent-protocol's own conformance runner and its client library, against `forecourt serve` over TLS."""

import asyncio
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from personal_agent_protocol import ApiError
from personal_agent_protocol.conformance import (
    CaseResult,
    ConformanceContext,
    Scenario,
    load_fixture_cases,
    run_conformance,
)
from personal_agent_protocol.demo.kit import AgentIdentity
from tests.server.running import lead
from tests.server_process import ServerProcess

from forecourt.server.pap.demonstration import DOMAIN, KEY_ID, Demonstration
from forecourt.server.pap.shopper import Dial, Shopper

NOT_APPLICABLE: Final[dict[str, str]] = json.loads(
    Path(__file__).with_name("pap_not_applicable.json").read_text(encoding="utf-8")
)
CASES: Final = [case.id for case in load_fixture_cases() if case.role == "company"]


class _NoUser:
    """Nobody signs in, and nobody operates a company that has nothing to operate."""

    capabilities: frozenset[str] = frozenset()
    accounts = ("nobody", "nobody else")
    other_identity = None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """The demonstration of PAP, of this module's own."""
    process = ServerProcess(tmp_path_factory.mktemp("pap"), pap=True)
    try:
        process.wait()
        yield process
    finally:
        process.stop()


def demonstration(server: ServerProcess) -> Demonstration:
    return Demonstration(server.folder / "data" / "pap-dev")


@pytest.fixture(scope="module")
def results(server: ServerProcess) -> dict[str, CaseResult]:
    """What the runner found, by case."""

    async def public(_: str) -> list[str]:
        return ["93.184.216.34"]  # an address that the runner's own check lets through; the transport dials us

    async def run() -> dict[str, CaseResult]:
        made = demonstration(server)
        transport = httpx.AsyncHTTPTransport(verify=ssl.create_default_context(cafile=made.authority))
        transport._pool._network_backend = Dial(server.port)
        async with httpx.AsyncClient(transport=transport, trust_env=False) as http:
            identity = AgentIdentity("agent.localhost", "Runner", extensions=(), private_key=made.agent_key, kid=KEY_ID)
            context = ConformanceContext(
                f"https://{DOMAIN}",
                identity=identity,
                http=http,
                driver=_NoUser(),  # type: ignore[arg-type]
                scenario=Scenario(read_path="/api/inventory.search", read_scope="none", scopes=()),
                address_resolver=public,
            )
            report = await run_conformance(context)
        return {result.id: result for result in report.results}

    return asyncio.run(run())


def test_the_runner_has_run_every_case_for_a_company(results: dict[str, CaseResult]) -> None:
    assert set(CASES) == set(results)
    assert set(NOT_APPLICABLE) <= set(CASES)
    assert all(len(reason) > 20 for reason in NOT_APPLICABLE.values())


@pytest.mark.requirement("ERR-PROTOCOL-DPOP", "ERR-PROTOCOL-PAP-CHALLENGE")
@pytest.mark.parametrize("case", [case for case in CASES if case not in NOT_APPLICABLE])
def test_a_case_that_applies_is_passed(case: str, results: dict[str, CaseResult]) -> None:
    assert results[case].outcome == "passed", results[case].message


@pytest.mark.parametrize("case", NOT_APPLICABLE)
def test_a_case_that_is_passed_is_not_listed_as_none_of_ours(case: str, results: dict[str, CaseResult]) -> None:
    assert results[case].outcome != "passed"


def test_the_packages_client_finds_the_dealer_starts_a_session_searches_and_submits_a_lead(
    server: ServerProcess,
) -> None:
    async def shop() -> tuple[Any, Any, Any, str]:
        shopper = Shopper(demonstration(server), server.port)
        try:
            company = await shopper.discover()
            token = await shopper.start(company)
            assert not token.signed_in
            found = await shopper.call(company, token, {"type": "inventory.search.request"})
            vehicle = found["data"]["vehicles"][0]
            sent = lead(vehicle_of_interest={"vehicle_id": vehicle["vehicle_id"]}, idempotency_key="shopper-key-1")
            receipt = await shopper.call(company, token, sent)
            again = await shopper.call(company, await shopper.start(company), sent)
            with pytest.raises(ApiError) as refused:
                await shopper.call(company, token, {"type": "inventory.vehicle.request", "stock": "NONE"})
            return found, receipt, again, f"{refused.value.status_code}"
        finally:
            await shopper.close()

    found, receipt, again, status = asyncio.run(shop())
    assert found["data"]["total"] == 554
    assert receipt["data"]["lead_id"].startswith("lead_")
    assert again == receipt  # the payload's key decides across Sessions
    assert status == "404"
