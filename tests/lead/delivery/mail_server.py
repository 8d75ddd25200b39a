"""Mail servers over loopback: aiosmtpd with answers to order, and servers that follow a script and misbehave."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import trustme
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

__all__ = ["HOST", "Authority", "MailServer", "Received", "mail_server", "scripted"]

HOST: Final = "127.0.0.1"


class Authority:
    """A certificate authority of the tests' own, with a server's certificate for this machine."""

    def __init__(self, folder: Any) -> None:
        """Make the authority, and put its certificate into a file."""
        self._authority = trustme.CA()
        self.file = str(folder / "authority.pem")
        self._authority.cert_pem.write_to_path(self.file)

    def context(self, *names: str) -> ssl.SSLContext:
        """Return the context of a server with a certificate for these names."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._authority.issue_cert(*(names or (HOST, "localhost"))).configure_cert(context)
        return context


@dataclass(frozen=True, slots=True)
class Received:
    """One message as it came over the wire, with its envelope."""

    sender: str
    to: tuple[str, ...]
    content: bytes
    encrypted: bool
    user: str | None


@dataclass(slots=True)
class MailServer:
    """What a server answers, and what it got. An answer of None is the usual one.

    `answers` maps a recipient, or "MAIL" and "DATA", to answers: one for each time, the last again and again.
    """

    answers: dict[str, list[str]] = field(default_factory=dict)
    users: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    received: list[Received] = field(default_factory=list)
    hello: list[str] = field(default_factory=list)
    logins: int = 0

    def _answer(self, step: str) -> str:
        script = self.answers.get(step) or ["250 2.0.0 OK"]
        return script.pop(0) if len(script) > 1 else script[0]

    async def handle_EHLO(  # noqa: N802
        self, _server: SMTP, session: Session, _envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        """Note how the client calls itself."""
        session.host_name = hostname
        self.hello.append(hostname)
        return responses

    async def handle_MAIL(  # noqa: N802
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        """Take the sender, or not."""
        answer = self._answer("MAIL")
        if answer.startswith("2"):
            envelope.mail_from = address
        return answer

    async def handle_RCPT(  # noqa: N802
        self, _server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        """Take a recipient, or not."""
        answer = self._answer(address)
        if answer.startswith("2"):
            envelope.rcpt_tos.append(address)
        return answer

    async def handle_DATA(self, _server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Take the message, or not."""
        answer = self._answer("DATA")
        if answer.startswith("2"):
            assert isinstance(envelope.original_content, bytes)
            self.received.append(
                Received(
                    envelope.mail_from or "",
                    tuple(envelope.rcpt_tos),
                    envelope.original_content,
                    session.ssl is not None,
                    session.auth_data.decode() if isinstance(session.auth_data, bytes) else None,
                )
            )
        return answer

    def check(self, _server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, data: object) -> AuthResult:
        """Tell whether a login is right."""
        self.logins += 1
        assert isinstance(data, LoginPassword)
        right = self.users.get(data.login.decode()) == data.password.decode()
        return AuthResult(success=right, handled=False, auth_data=data.login if right else None)


@asynccontextmanager
async def mail_server(
    server: MailServer, *, starttls: ssl.SSLContext | None = None, tls: ssl.SSLContext | None = None, **more: Any
) -> AsyncIterator[MailServer]:
    """Run a mail server on a free port of this machine."""

    def protocol() -> SMTP:
        return SMTP(
            server,
            hostname="mail.example.com",
            tls_context=starttls,
            authenticator=server.check if server.users else None,
            **more,
        )

    running = await asyncio.get_running_loop().create_server(protocol, HOST, 0, ssl=tls)
    server.port = running.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        running.close()


Act = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]


@asynccontextmanager
async def scripted(script: Sequence[bytes | Act]) -> AsyncIterator[int]:
    """Run a server that sends the first entry, and each next one after a line came; yields its port.

    An entry that is callable is awaited with the streams in the place of an answer. After the script it hangs up.
    """
    tasks: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(ConnectionError, asyncio.CancelledError):
            for number, step in enumerate(script):
                if number and not callable(step):
                    await reader.readline()
                if callable(step):
                    await step(reader, writer)
                else:
                    writer.write(step)
                    await writer.drain()
        writer.close()
        tasks.discard(task)

    running = await asyncio.start_server(talk, HOST, 0)
    try:
        yield running.sockets[0].getsockname()[1]
    finally:
        running.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
