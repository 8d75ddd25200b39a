"""What of the configuration PAP depends on, checked before anything starts; nothing here needs the package."""

from typing import Final
from urllib.parse import urlsplit

from forecourt.server.config import Config, ConfigError

__all__ = ["check", "public_url"]

_SCHEME: Final = "https://"


def public_url(config: Config) -> str:
    """Return the address that tokens and proofs are made for: `server.public_url`, or the domain's own."""
    return config.server.public_url or f"{_SCHEME}{(config.pap.domain or '').lower()}"


def check(config: Config) -> None:
    """Raise ConfigError unless PAP can be offered."""
    domain = (config.pap.domain or "").lower()
    if not domain:
        raise ConfigError("pap.domain: say by which domain agents find this dealer, for example dealer.example.com")
    parts = urlsplit(public_url(config))
    if parts.scheme != "https" or parts.path or parts.query:
        raise ConfigError("server.public_url: must be https:// and a host, without a path, where pap.enabled is true")
    host = parts.hostname or ""
    if host != domain and not host.endswith(f".{domain}"):
        # "where {domain} is the Company's domain or a subdomain it controls" (PAP draft 0.2, section 3).
        raise ConfigError("server.public_url: its host must be pap.domain or lie below it")
