"""The dealer agent as an ASGI application. Sockets are opened by what runs it; no other room opens any."""

from forecourt.server.app import Application, create_app
from forecourt.server.config import Config, ConfigError, load

__all__ = ["Application", "Config", "ConfigError", "create_app", "load"]
