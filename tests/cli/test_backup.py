"""`forecourt backup` and `forecourt restore`: what they print; what they promise is in store/ and durability/."""

import gzip
import json
from base64 import b64encode
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.cli.test_leads import GRANT, KEY, Dealer, business

from forecourt.cli import main


def run(dealer: Dealer, *arguments: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(main, [*arguments], env={"FORECOURT_CONFIG": str(dealer.config)})


def test_a_backup_and_its_restore_say_what_is_in_it(tmp_path: Path) -> None:
    dealer, file = Dealer(tmp_path), tmp_path / "a.backup"
    dealer.take(business("Zephyrine"))
    made = run(dealer, "backup", str(file))
    assert made.exit_code == 0
    assert made.stdout.startswith(f"{file}: 1 lead, 0 listings, ")
    again = run(dealer, "backup", str(file))
    assert (again.exit_code, len(again.stderr.splitlines())) == (1, 1)
    # Nothing is written over, and nothing of a restore is left where one is refused.
    before = {each: each.read_bytes() for each in (tmp_path / "data").iterdir() if each.is_file()}
    refused = run(dealer, "restore", str(file))
    assert (refused.exit_code, "nothing is written over" in refused.stderr) == (1, True)
    assert {each: each.read_bytes() for each in (tmp_path / "data").iterdir() if each.is_file()} == before
    restored = run(dealer, "restore", str(file), "--data", str(tmp_path / "new"))
    assert (restored.exit_code, restored.stdout.split(",")[0]) == (0, "restored 1 lead")
    assert "revoked, purged or marked since the backup" in restored.stderr
    told = json.loads(run(dealer, "restore", str(file), "--data", str(tmp_path / "newer"), "--json").stdout)
    assert (told["leads"], told["listings"], told["size"]) == (1, 0, file.stat().st_size)


def test_without_a_database_there_is_nothing_to_back_up(tmp_path: Path) -> None:
    result = run(Dealer(tmp_path), "backup", str(tmp_path / "a.backup"))
    assert result.exit_code == 1
    assert result.stderr == f"forecourt: there is no database yet at {tmp_path / 'data' / 'forecourt.db'}\n"


def test_encrypted_leads_are_encrypted_in_a_backup_and_read_with_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dealer = Dealer(tmp_path, '[leads]\nencryption_key_env = "TEST_LEADS_KEY"\n')
    monkeypatch.setenv("TEST_LEADS_KEY", KEY)
    lead_id = dealer.take(business("Zephyrine"))
    monkeypatch.delenv("TEST_LEADS_KEY")
    # Neither command needs the key.
    file = tmp_path / "a.backup"
    assert run(dealer, "backup", str(file)).exit_code == 0
    assert run(dealer, "restore", str(file), "--data", str(tmp_path / "new")).exit_code == 0
    inside = gzip.decompress(file.read_bytes())
    assert lead_id.encode() in inside
    for secret in (b"Zephyrine", b"consent_text", KEY.encode(), b64encode(b"Zephyrine")[:-2]):
        assert secret not in inside
    monkeypatch.setenv("TEST_LEADS_KEY", KEY)
    found = json.loads(run(dealer, "leads", "show", lead_id, "--data", str(tmp_path / "new"), "--json").stdout)
    assert json.loads(found["grant"]) == GRANT
    assert found["lead"]["customer"]["email"] == "Zephyrine@example.com"
