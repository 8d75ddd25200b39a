"""The demonstration's certificates and agent: made once, whole, and for their owner's eyes."""

import multiprocessing
import ssl
import stat
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from personal_agent_protocol import ClientMetadata, JsonWebKeySet

from forecourt.server.pap import demonstration as module
from forecourt.server.pap.demonstration import AGENT_ID, prepare


def fingerprint(data: str) -> bytes:
    """Prepare a demonstration and return what its certificate is."""
    return prepare(Path(data)).certificate.read_bytes()


def test_it_is_made_once(tmp_path: Path) -> None:
    first = prepare(tmp_path / "data")
    key = (first.folder / "agent-key.pem").read_bytes()
    assert prepare(tmp_path / "data") == first
    assert (first.folder / "agent-key.pem").read_bytes() == key
    assert [found.name for found in (tmp_path / "data").iterdir()] == ["pap-dev"]


def test_processes_that_make_it_at_once_have_the_same(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, multiprocessing.get_context("spawn")) as pool:
        made = set(pool.map(fingerprint, [str(tmp_path)] * 8))
    assert len(made) == 1
    assert [found.name for found in tmp_path.iterdir()] == ["pap-dev"]


def test_keys_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = prepare(tmp_path).folder
    for file in ("agent-key.pem", "server-key.pem"):
        assert stat.S_IMODE((folder / file).stat().st_mode) == 0o600


def test_its_certificate_is_trusted_by_who_trusts_its_authority(tmp_path: Path) -> None:
    made = prepare(tmp_path)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(made.certificate, made.server_key)
    ssl.create_default_context(cafile=made.authority)


def test_the_agent_publishes_what_the_protocol_asks_for(tmp_path: Path) -> None:
    made = prepare(tmp_path)
    [(client_id, (metadata, keys))] = made.known_agents.items()
    assert client_id == AGENT_ID == ClientMetadata.model_validate(metadata).client_id
    [key] = JsonWebKeySet.model_validate(keys).keys
    assert key.kty == "EC"


def test_a_certificate_that_has_run_out_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LIVES", timedelta(hours=1))
    old = prepare(tmp_path).certificate.read_bytes()
    monkeypatch.setattr(module, "_LIVES", timedelta(days=365))
    assert prepare(tmp_path).certificate.read_bytes() != old
    assert [found.name for found in tmp_path.iterdir()] == ["pap-dev"]


def test_a_folder_without_the_agents_identity_is_made_anew(tmp_path: Path) -> None:
    made = prepare(tmp_path)
    made.identity.unlink()
    assert prepare(tmp_path).identity.is_file()
    assert [found.name for found in tmp_path.iterdir()] == ["pap-dev"]


def test_a_folder_that_cannot_be_written_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no folder", encoding="utf-8")
    with pytest.raises(OSError, match="exists"):
        prepare(tmp_path / "data")
