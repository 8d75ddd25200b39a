"""The A2A v1.0 agent card: written from typed parts, read with patience.

`AgentCard.to_payload` writes the ProtoJSON form with the members that A2A v1.0 defines and no others, since
strict parsers refuse the rest. `AgentCard.from_payload` reads any object: what is missing or of the wrong
type reads as absent, and the whole of what came stays in `raw`.

Source: A2A v1.0, sections 4.4 (agent card), 4.5 (security) and 4.6 (extensions).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from forecourt.a2a.error import A2AError

__all__ = [
    "AgentCard",
    "AgentExtension",
    "AgentInterface",
    "AgentProvider",
    "AgentSkill",
    "SecurityRequirement",
    "api_key_scheme",
    "http_auth_scheme",
    "mtls_scheme",
    "oauth2_client_credentials_scheme",
    "open_id_connect_scheme",
]

SecurityRequirement = Mapping[str, Sequence[str]]
"""Names of security schemes that are needed together, each with the scopes it must grant."""


@dataclass(frozen=True, slots=True)
class AgentInterface:
    """One endpoint: its URL, its binding ("JSONRPC", "HTTP+JSON", "GRPC") and the A2A version it speaks."""

    url: str
    protocol_binding: str = "JSONRPC"
    protocol_version: str = "1.0"
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class AgentExtension:
    """A declared extension. `required` means that the agent serves nobody who does not implement it."""

    uri: str
    description: str | None = None
    required: bool = False
    params: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class AgentSkill:
    """Something the agent can do. Modes are media types that stand in place of the card's defaults."""

    id: str
    name: str
    description: str
    tags: Sequence[str] = ()
    examples: Sequence[str] = ()
    input_modes: Sequence[str] = ()
    output_modes: Sequence[str] = ()
    security_requirements: Sequence[SecurityRequirement] = ()


@dataclass(frozen=True, slots=True)
class AgentProvider:
    """Who runs the agent."""

    organization: str
    url: str


@dataclass(frozen=True, slots=True)
class AgentCard:
    """What an agent says about itself at `/.well-known/agent-card.json`.

    `version` is the agent's own version, not the protocol's. `interfaces` come in order of preference.
    `security_requirements` are alternatives; none means that anybody may call. `raw` is what a card was
    read from.
    """

    name: str
    description: str
    version: str
    interfaces: Sequence[AgentInterface]
    skills: Sequence[AgentSkill]
    default_input_modes: Sequence[str] = ("application/json",)
    default_output_modes: Sequence[str] = ("application/json",)
    extensions: Sequence[AgentExtension] = ()
    provider: AgentProvider | None = None
    documentation_url: str | None = None
    icon_url: str | None = None
    streaming: bool = False
    push_notifications: bool = False
    extended_agent_card: bool = False
    security_schemes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    security_requirements: Sequence[SecurityRequirement] = ()
    raw: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    def extension(self, uri: str) -> AgentExtension | None:
        """Return the declared extension with exactly this URI."""
        return next((extension for extension in self.extensions if extension.uri == uri), None)

    def interface(self, protocol_binding: str = "JSONRPC", protocol_version: str = "1.0") -> AgentInterface | None:
        """Return the first endpoint that speaks this binding in this version; patch levels do not matter."""
        for interface in self.interfaces:
            spoken = interface.protocol_version
            if interface.protocol_binding == protocol_binding and (
                spoken == protocol_version or spoken.startswith(f"{protocol_version}.")
            ):
                return interface
        return None

    def skill(self, id: str) -> AgentSkill | None:  # noqa: A002 - the member's name
        """Return the skill with this id."""
        return next((skill for skill in self.skills if skill.id == id), None)

    def to_payload(self) -> dict[str, Any]:
        """Return the card as it is published. Optional members that are unset or empty are left out."""
        capabilities: dict[str, Any] = {
            "streaming": self.streaming,
            "pushNotifications": self.push_notifications,
            "extendedAgentCard": self.extended_agent_card,
        }
        if self.extensions:
            capabilities["extensions"] = [_write_extension(extension) for extension in self.extensions]
        card: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "supportedInterfaces": [_write_interface(interface) for interface in self.interfaces],
        }
        if self.provider is not None:
            card["provider"] = {"organization": self.provider.organization, "url": self.provider.url}
        card["version"] = self.version
        _put(card, "documentationUrl", self.documentation_url)
        _put(card, "iconUrl", self.icon_url)
        card["capabilities"] = capabilities
        _put(card, "securitySchemes", {name: dict(scheme) for name, scheme in self.security_schemes.items()})
        _put(card, "securityRequirements", _write_requirements(self.security_requirements))
        card["defaultInputModes"] = list(self.default_input_modes)
        card["defaultOutputModes"] = list(self.default_output_modes)
        card["skills"] = [_write_skill(skill) for skill in self.skills]
        return card

    @classmethod
    def from_payload(cls, payload: object) -> "AgentCard":
        """Read a card that some agent published.

        Raises A2AError INVALID_AGENT_RESPONSE for what is not a JSON object, and for nothing else: entries
        of lists that lack what names them (an extension's uri, a skill's id, an interface's url) are passed
        over.
        """
        if not isinstance(payload, dict):
            raise A2AError.invalid_agent_response("The agent card is not a JSON object")
        capabilities = _object(payload, "capabilities")
        provider = payload.get("provider")
        schemes = _object(payload, "securitySchemes")
        return cls(
            name=_text(payload, "name"),
            description=_text(payload, "description"),
            version=_text(payload, "version"),
            interfaces=tuple(
                AgentInterface(
                    entry["url"],
                    _text(entry, "protocolBinding"),
                    _text(entry, "protocolVersion"),
                    _text(entry, "tenant") or None,
                )
                for entry in _entries(payload, "supportedInterfaces", named="url")
            ),
            skills=tuple(_read_skill(entry) for entry in _entries(payload, "skills", named="id")),
            default_input_modes=_texts(payload, "defaultInputModes"),
            default_output_modes=_texts(payload, "defaultOutputModes"),
            extensions=tuple(
                AgentExtension(
                    entry["uri"],
                    _text(entry, "description") or None,
                    entry.get("required") is True,
                    entry["params"] if isinstance(entry.get("params"), dict) else None,
                )
                for entry in _entries(capabilities, "extensions", named="uri")
            ),
            provider=(
                AgentProvider(_text(provider, "organization"), _text(provider, "url"))
                if isinstance(provider, dict)
                else None
            ),
            documentation_url=_text(payload, "documentationUrl") or None,
            icon_url=_text(payload, "iconUrl") or None,
            streaming=capabilities.get("streaming") is True,
            push_notifications=capabilities.get("pushNotifications") is True,
            extended_agent_card=capabilities.get("extendedAgentCard") is True,
            security_schemes={name: scheme for name, scheme in schemes.items() if isinstance(scheme, dict)},
            security_requirements=_read_requirements(payload),
            raw=payload,
        )


# -- security schemes


def api_key_scheme(name: str, location: str = "header", description: str | None = None) -> dict[str, Any]:
    """Return the scheme of a key that is sent as `name` in a "header", "query" or "cookie"."""
    return {"apiKeySecurityScheme": _described({"location": location, "name": name}, description)}


def http_auth_scheme(
    scheme: str = "Bearer", bearer_format: str | None = None, description: str | None = None
) -> dict[str, Any]:
    """Return the scheme of an HTTP `Authorization` header."""
    inner: dict[str, Any] = {"scheme": scheme}
    _put(inner, "bearerFormat", bearer_format)
    return {"httpAuthSecurityScheme": _described(inner, description)}


def oauth2_client_credentials_scheme(
    token_url: str,
    scopes: Mapping[str, str],
    *,
    metadata_url: str | None = None,
    description: str | None = None,
) -> dict[str, Any]:
    """Return the OAuth 2.0 client-credentials scheme; `scopes` maps each scope to what it allows."""
    inner: dict[str, Any] = {"flows": {"clientCredentials": {"tokenUrl": token_url, "scopes": dict(scopes)}}}
    _put(inner, "oauth2MetadataUrl", metadata_url)
    return {"oauth2SecurityScheme": _described(inner, description)}


def open_id_connect_scheme(url: str, description: str | None = None) -> dict[str, Any]:
    """Return the scheme of an OpenID Connect issuer, by the URL of its discovery document."""
    return {"openIdConnectSecurityScheme": _described({"openIdConnectUrl": url}, description)}


def mtls_scheme(description: str | None = None) -> dict[str, Any]:
    """Return the scheme of a TLS client certificate."""
    return {"mtlsSecurityScheme": _described({}, description)}


def _described(inner: dict[str, Any], description: str | None) -> dict[str, Any]:
    _put(inner, "description", description)
    return inner


# -- writing


def _put(target: dict[str, Any], name: str, value: Any) -> None:
    if value:
        target[name] = value


def _write_interface(interface: AgentInterface) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "url": interface.url,
        "protocolBinding": interface.protocol_binding,
        "protocolVersion": interface.protocol_version,
    }
    _put(entry, "tenant", interface.tenant)
    return entry


def _write_extension(extension: AgentExtension) -> dict[str, Any]:
    entry: dict[str, Any] = {"uri": extension.uri}
    _put(entry, "description", extension.description)
    entry["required"] = extension.required
    if extension.params is not None:
        entry["params"] = dict(extension.params)
    return entry


def _write_skill(skill: AgentSkill) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "tags": list(skill.tags),
    }
    _put(entry, "examples", list(skill.examples))
    _put(entry, "inputModes", list(skill.input_modes))
    _put(entry, "outputModes", list(skill.output_modes))
    _put(entry, "securityRequirements", _write_requirements(skill.security_requirements))
    return entry


def _write_requirements(requirements: Sequence[SecurityRequirement]) -> list[dict[str, Any]]:
    # ProtoJSON has no map of lists: each list of scopes is a message of its own.
    return [
        {"schemes": {name: {"list": list(scopes)} for name, scopes in requirement.items()}}
        for requirement in requirements
    ]


# -- reading


def _text(source: Mapping[str, Any], name: str) -> str:
    value = source.get(name)
    return value if isinstance(value, str) else ""


def _texts(source: Mapping[str, Any], name: str) -> tuple[str, ...]:
    values = source.get(name)
    return tuple(value for value in values if isinstance(value, str)) if isinstance(values, list) else ()


def _object(source: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = source.get(name)
    return value if isinstance(value, dict) else {}


def _entries(source: Mapping[str, Any], name: str, *, named: str) -> list[dict[str, Any]]:
    values = source.get(name)
    if not isinstance(values, list):
        return []
    return [value for value in values if isinstance(value, dict) and isinstance(value.get(named), str)]


def _read_skill(entry: Mapping[str, Any]) -> AgentSkill:
    return AgentSkill(
        entry["id"],
        _text(entry, "name"),
        _text(entry, "description"),
        _texts(entry, "tags"),
        _texts(entry, "examples"),
        _texts(entry, "inputModes"),
        _texts(entry, "outputModes"),
        _read_requirements(entry),
    )


def _read_requirements(source: Mapping[str, Any]) -> tuple[SecurityRequirement, ...]:
    requirements = source.get("securityRequirements")
    if not isinstance(requirements, list):
        return ()
    return tuple(
        {
            name: _texts(scopes, "list") if isinstance(scopes, dict) else ()
            for name, scopes in _object(requirement, "schemes").items()
        }
        for requirement in requirements
        if isinstance(requirement, dict)
    )
