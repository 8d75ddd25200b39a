"""`forecourt serve --pap-dev`: PAP on this machine alone, with a certificate and a demonstration agent of its own.

Everything lies in one folder beside the database and is made once: a certification authority that only this
demonstration trusts, the server's certificate, and the agent's key. The server knows that agent beforehand, so nothing
is fetched for it; every other agent is looked up and fetched as always.
"""

import ipaddress
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from jwt.algorithms import ECAlgorithm

__all__ = ["AGENT_ID", "DOMAIN", "Demonstration", "prepare"]

DOMAIN: Final = "dealer.localhost"
"""The dealer's domain in the demonstration; names below .localhost mean this machine (RFC 6761 section 6.3)."""
AGENT_ID: Final = "https://agent.localhost/agent.json"
KEY_ID: Final = "demonstration"
_NAME: Final = "Forecourt demonstration"
_LIVES: Final = timedelta(days=365)
_FOLDER: Final = "pap-dev"


@dataclass(frozen=True)
class Demonstration:
    """The folder of a demonstration and what is in it."""

    folder: Path

    @property
    def authority(self) -> Path:
        """The certificate that the demonstration's clients trust."""
        return self.folder / "ca.pem"

    @property
    def certificate(self) -> Path:
        """The server's certificate, with its chain."""
        return self.folder / "server.pem"

    @property
    def server_key(self) -> Path:
        """The server's key."""
        return self.folder / "server-key.pem"

    @property
    def agent_key(self) -> ec.EllipticCurvePrivateKey:
        """The demonstration agent's key."""
        key = serialization.load_pem_private_key((self.folder / "agent-key.pem").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return key

    @property
    def identity(self) -> Path:
        """What `--identity` of the buyer's commands takes to be the demonstration's agent."""
        return self.folder / "agent.json"

    @property
    def known_agents(self) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
        """The agent's metadata and keys by its `client_id`, as it would publish them."""
        public = json.loads(ECAlgorithm.to_jwk(self.agent_key.public_key()))
        host = AGENT_ID.rsplit("/", 1)[0]
        metadata = {"client_id": AGENT_ID, "client_name": f"{_NAME} agent", "jwks_uri": f"{host}/jwks.json"}
        return {AGENT_ID: (metadata, {"keys": [{**public, "kid": KEY_ID, "use": "sig", "alg": "ES256"}]})}


def prepare(data: Path) -> Demonstration:
    """Return the demonstration beside a database, made now where there is none or its certificate has run out.

    Safe for several processes at once: the folder appears whole or not at all. Raises OSError.
    """
    found = Demonstration(data / _FOLDER)
    if found.folder.is_dir() and not _is_stale(found):
        return found
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}-", dir=data))
    try:
        _fill(fresh)
        if found.folder.is_dir() and _is_stale(found):
            shutil.rmtree(found.folder)
        os.rename(fresh, found.folder)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)
        if not found.certificate.is_file():
            raise
    return found


def _is_stale(found: Demonstration) -> bool:
    return _has_run_out(found.certificate) or not found.identity.is_file()


def _has_run_out(certificate: Path) -> bool:
    read = x509.load_pem_x509_certificate(certificate.read_bytes())
    return read.not_valid_after_utc <= datetime.now(UTC) + timedelta(days=1)


def _fill(folder: Path) -> None:
    now = datetime.now(UTC)
    authority_key, server_key, agent_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{_NAME} authority")])
    authority = (
        _certificate(authority_name, authority_name, authority_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    names: list[x509.GeneralName] = [x509.DNSName(DOMAIN), x509.DNSName("localhost")]
    names.append(x509.IPAddress(ipaddress.IPv4Address("127.0.0.1")))
    server = (
        _certificate(
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, DOMAIN)]), authority_name, server_key.public_key(), now
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(server_key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "ca.pem").write_bytes(authority.public_bytes(pem))
    (folder / "server.pem").write_bytes(server.public_bytes(pem) + authority.public_bytes(pem))
    identity = {"client_id": AGENT_ID, "key_id": KEY_ID, "private_key": "agent-key.pem", "demonstration": True}
    (folder / "agent.json").write_text(json.dumps(identity, indent=2) + "\n", encoding="utf-8")
    for file, key in (("server-key.pem", server_key), ("agent-key.pem", agent_key)):
        path = folder / file
        path.touch(mode=0o600)
        path.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _LIVES)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
