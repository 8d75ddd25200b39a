"""One context for all who trust the same, and another as soon as that is something else."""

import os
from pathlib import Path

import pytest
from tests.lead.delivery.mail_server import Authority

from forecourt.lead.delivery import TargetError
from forecourt.lead.delivery.trust import trusting


def test_targets_of_one_way_that_trust_the_same_share_a_context(tmp_path: Path) -> None:
    file = Authority(tmp_path).file
    assert trusting("https", file) is trusting("https", file)
    assert trusting("https", None) is trusting("https", None)
    assert trusting("https", file) is not trusting("https", None)
    assert trusting("https", None) is not trusting("email", None), "a protocol settled by TLS is one way's own"


def test_certificates_that_were_exchanged_are_read_again(tmp_path: Path) -> None:
    first, second = (Authority(_folder(tmp_path, name)) for name in ("first", "second"))
    file = tmp_path / "ca.pem"
    subjects = []
    for authority in (first, second):
        unfinished = tmp_path / "ca.part"
        unfinished.write_bytes(Path(authority.file).read_bytes())
        unfinished.replace(file)
        subjects.append(trusting("https", str(file)).get_ca_certs(binary_form=True))
    assert len(subjects[0]) == len(subjects[1]) == 1
    assert subjects[0] != subjects[1]


def test_the_certificates_that_the_environment_names_are_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = trusting("https", None)
    monkeypatch.setenv("SSL_CERT_FILE", os.fspath(Authority(tmp_path).file))
    assert trusting("https", None) is not before


def test_a_file_that_holds_no_certificates_is_refused_each_time(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    for _ in range(2):
        with pytest.raises(TargetError, match=r"^ca_file: "):
            trusting("https", str(file))
    file.write_text("nothing")
    with pytest.raises(TargetError, match=r"^ca_file: "):
        trusting("https", str(file))


def _folder(parent: Path, name: str) -> Path:
    (parent / name).mkdir()
    return parent / name
