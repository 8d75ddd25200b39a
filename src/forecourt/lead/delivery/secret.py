"""Secrets of targets: named in the configuration, kept in the environment or in a file."""

import os
from typing import Final

from forecourt.lead.delivery import TargetError

__all__ = ["read_secret"]

_LONGEST: Final = 65_536


def read_secret(key: str, env: str | None, file: str | None) -> str | None:
    """Return the secret of `{key}_env` or `{key}_file`, whichever is set; None when neither is.

    A file's last line end is no part of it. Raises TargetError, which names the setting and never its content.
    """
    if env is not None and file is not None:
        raise TargetError(f"{key}_env: cannot stand beside {key}_file")
    if env is not None:
        value = os.environ.get(env)
        if value is None:
            raise TargetError(f"{key}_env: there is no such variable in the environment")
        origin = f"{key}_env"
    elif file is not None:
        value, origin = _read(f"{key}_file", file), f"{key}_file"
    else:
        return None
    if not value.strip():
        raise TargetError(f"{origin}: is empty")
    return value


def _read(key: str, file: str) -> str:
    try:
        with open(file, encoding="utf-8", newline="") as opened:
            text = opened.read(_LONGEST + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise TargetError(f"{key}: cannot be read ({reason or 'it is no text'})") from None
    if len(text) > _LONGEST:
        raise TargetError(f"{key}: is longer than a secret is")
    return text.removesuffix("\n").removesuffix("\r")
