"""PAP, the Personal Agent Protocol: an extra (`forecourt[pap]`), imported when a configuration switches it on."""

from typing import TYPE_CHECKING, Final

from forecourt.server.config import ConfigError
from forecourt.server.deployment import Deployment
from forecourt.server.pap import settings

if TYPE_CHECKING:
    from forecourt.server.pap.site import PAPSite

__all__ = ["pap_site"]

_OF_THE_EXTRA: Final = ("personal_agent_protocol", "reactor", "jwt", "httpx", "cryptography")


def pap_site(deployment: Deployment) -> "PAPSite | None":
    """Return the PAP side of a deployment, None where it is switched off. Raises ConfigError."""
    if not deployment.config.pap.enabled:
        return None
    settings.check(deployment.config)
    try:
        from forecourt.server.pap.site import PAPSite
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _OF_THE_EXTRA:
            raise
        raise ConfigError("pap.enabled: PAP needs the extra: pip install 'forecourt[pap]'") from error
    return PAPSite(deployment)
