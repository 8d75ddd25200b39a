"""Delivery by email: an ADF document as CRMs take it, or a notice for people, handed to one SMTP server.

Sources: ADF.md, "Rules for the mapping"; RFC 5321 (SMTP), 5322 (messages), 3207 (STARTTLS), 4954 (AUTH).
"""

import asyncio
import re
import ssl
import unicodedata
from contextlib import suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import format_datetime
from hashlib import sha256
from typing import Annotated, Final, Literal

import aiosmtplib
import msgspec
from msgspec import Meta

from forecourt.address import is_loopback
from forecourt.lead.adf.text import LONGEST_LINE, to_ascii_xml
from forecourt.lead.delivery import DeliveryError, Parcel, TargetError
from forecourt.lead.delivery.secret import read_secret
from forecourt.lead.delivery.trust import trusting

__all__ = ["SETTINGS", "TARGET", "EmailSettings", "EmailTarget"]

_ADDRESS: Final = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*"
)
_LONGEST_ADDRESS: Final = 254
_MOST_RECIPIENTS: Final = 100
"""What every mail server takes for one message (RFC 5321 section 4.5.3.1.8)."""
_HOST: Final = re.compile(r"[A-Za-z0-9_.-]+|[0-9A-Fa-f:.]+")
_ID: Final = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
_METHOD: Final = re.compile(rb"^METHOD:([A-Z]+)\r?$", re.MULTILINE)
_ENHANCED: Final = re.compile(r"[245]\.\d{1,3}\.\d{1,3}(?!\d)", re.ASCII)
_LONGEST_NAME: Final = 120
_PORTS: Final = {True: 465, False: 587}
_GOODBYE: Final = 2.0
"""Seconds that the server has to answer QUIT; by then it has the message."""
_LOWEST: Final = 200
_LAST_TEMPORARY: Final = 499
_HIGHEST: Final = 599
_NO_SMTP: Final = "the mail server does not offer what is needed, or does not speak SMTP"
_LATER: Final = frozenset({452, 530, 534, 535, 538, 552})
"""Answers to RCPT that may change without a change of address: too many or too much (RFC 5321 section 4.5.3.1.10
has 552 read as 452 there), and what is wrong with our login (RFC 4954 section 6)."""
_POLICY: Final = re.compile(r"5\.7\.")
"""The enhanced status of a refusal for who we are, not for who is written to (RFC 3463 section 3.8)."""
_WIRE: Final = SMTP_POLICY.clone(cte_type="7bit")


class EmailSettings(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What a target of `via = "email"` says."""

    host: Annotated[str, Meta(min_length=1)]
    """The mail server that takes our messages."""
    port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    """Its port; 587, or 465 with `tls`."""
    tls: bool = False
    """Encrypted from the first byte, which STARTTLS is not."""
    starttls: Literal["required", "if-offered", "no"] = "required"
    """Whether a connection that begins in the clear has to become encrypted."""
    ca_file: str | None = None
    """Certificates (PEM) that vouch for the server, in the place of the system's."""
    username: Annotated[str, Meta(min_length=1)] | None = None
    password_env: str | None = None
    """The environment variable that holds the password."""
    password_file: str | None = None
    """The file that holds the password."""
    sender: str
    """The address that messages come from."""
    to: tuple[str, ...]
    """The addresses that one message goes to."""
    timeout: Annotated[float, Meta(gt=0, le=300)] = 60.0
    """Seconds for the whole of one delivery."""


class EmailTarget:
    """One or more mailboxes behind one mail server.

    One message goes to all of them. If one is refused for now, none gets it, so that the next try gives nobody a
    second one; if some are refused for good, the others get it and the delivery ends with a permanent error.
    """

    kind = "email"

    def __init__(self, settings: EmailSettings) -> None:
        """Check the settings and read the password. Raises TargetError."""
        _check(settings)
        self._settings = settings
        self.port = settings.port or _PORTS[settings.tls]
        self._password = read_secret("password", settings.password_env, settings.password_file)
        if (settings.username is None) != (self._password is None):
            raise TargetError("username: needs password_env or password_file, and either of them needs it")
        self._context = trusting(self.kind, settings.ca_file)
        self._domain = settings.sender.rpartition("@")[2]

    async def send(self, parcel: Parcel) -> None:
        """Hand the parcel to the mail server, which then answers for it."""
        settings = self._settings
        try:
            message = self._message(parcel)
        except ValueError:
            # Not chained: it would quote the lead.
            raise DeliveryError("the content is no text that an email can hold", permanent=True) from None
        server = aiosmtplib.SMTP(
            hostname=settings.host,
            port=self.port,
            # Not the name of this machine, which is nobody's business and takes a look-up to find.
            local_hostname=self._domain,
            # The time for the whole is kept below. A limit of each step waits by asyncio.wait_for, which on Python 3.11
            # can pass over being cancelled.
            timeout=None,
            use_tls=settings.tls,
            start_tls=False,
            tls_context=self._context,
        )
        try:
            async with asyncio.timeout(settings.timeout):
                refused = await self._hand_over(server, message)
            with suppress(aiosmtplib.SMTPException, OSError, ValueError):
                async with asyncio.timeout(_GOODBYE):
                    await server.quit()
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            # Not chained: the text is the other side's, and names mailboxes.
            raise _judged(error) from None
        finally:
            server.close()
        if refused:
            count = len(settings.to)
            raise DeliveryError(
                f"delivered to {count - len(refused)} of {count} recipients; {_listed(refused)}", permanent=True
            )

    async def close(self) -> None:
        """Nothing is held open."""

    def _message(self, parcel: Parcel) -> bytes:
        if parcel.kind == "event":
            raise DeliveryError("an email target carries no events", permanent=True)
        message = EmailMessage(policy=_WIRE)
        vendor = _one_line(parcel.vendor)
        message["From"] = self._settings.sender
        message["To"] = ", ".join(self._settings.to)
        message["Subject"] = f"New lead for {vendor}" if vendor else "New lead"
        message["Date"] = format_datetime(datetime.now(UTC))
        message["Message-ID"] = f"<{_identified(parcel.delivery_id)}@{self._domain}>"
        message["Auto-Submitted"] = "auto-generated"
        if parcel.kind == "adf":
            message.set_content(_for_transport(parcel.content), charset="us-ascii", cte="7bit")
        else:
            message.set_content(parcel.content.decode("utf-8", "replace"), charset="utf-8", cte="quoted-printable")
            if parcel.calendar is not None:
                _attach(message, parcel.calendar)
        return message.as_bytes()

    async def _hand_over(self, server: aiosmtplib.SMTP, message: bytes) -> list[tuple[int, str]]:
        """Return the recipients that are refused for good, by their place in `to`, with how."""
        await server.connect()
        await _greet(server)
        encrypted = self._settings.tls or await self._encrypt(server)
        if self._settings.username is not None and self._password is not None:
            if not encrypted and not _is_own(self._settings.host):
                raise DeliveryError("the mail server offers no STARTTLS, and no password goes without")
            await server.login(self._settings.username, self._password)
        await server.mail(self._settings.sender)
        refused: list[tuple[int, str]] = []
        later: list[tuple[int, str]] = []
        for place, recipient in enumerate(self._settings.to, 1):
            try:
                await server.rcpt(recipient)
            except aiosmtplib.SMTPRecipientRefused as error:
                (later if _may_pass(error) else refused).append((place, _status(error)))
        if later:
            raise DeliveryError(_listed(later))
        if len(refused) == len(self._settings.to):
            raise DeliveryError(_listed(refused), permanent=True)
        await server.data(message)
        return refused

    async def _encrypt(self, server: aiosmtplib.SMTP) -> bool:
        if self._settings.starttls == "no":
            return False
        if server.supports_extension("starttls"):
            await server.starttls()
            await _greet(server)
            return True
        if self._settings.starttls == "required":
            raise DeliveryError("the mail server offers no STARTTLS")
        return False


def _check(settings: EmailSettings) -> None:
    if not _HOST.fullmatch(settings.host):
        raise TargetError("host: must be the name or the address of a mail server, in ASCII")
    if not settings.to:
        raise TargetError("to: needs at least one address")
    if len(settings.to) > _MOST_RECIPIENTS:
        raise TargetError(f"to: takes at most {_MOST_RECIPIENTS} addresses")
    for key, address in (("sender", settings.sender), *(("to", each) for each in settings.to)):
        if not _ADDRESS.fullmatch(address) or len(address) > _LONGEST_ADDRESS:
            raise TargetError(f"{key}: must be a plain ASCII address such as leads@example.com")
    if len({address.lower() for address in settings.to}) < len(settings.to):
        raise TargetError("to: names an address twice")
    if settings.username is not None and settings.starttls == "no" and not settings.tls and not _is_own(settings.host):
        raise TargetError('starttls: "no" would send the password in the clear')


def _is_own(host: str) -> bool:
    return host.lower() == "localhost" or is_loopback(host)


async def _greet(server: aiosmtplib.SMTP) -> None:
    try:
        await server.ehlo()
    except aiosmtplib.SMTPHeloError:
        await server.helo()


# What came of it


def _judged(error: Exception) -> DeliveryError:
    """Return what a failure means. Only a refusal of the message itself is permanent (recipients are judged apart).

    Everything else can be mended on either side without the message changing: a password, a certificate, a sender
    that is not allowed yet, a server that is down, full or suspicious for an hour.
    """
    if isinstance(error, ssl.SSLCertVerificationError) or isinstance(error.__cause__, ssl.SSLCertVerificationError):
        return DeliveryError("the mail server's certificate cannot be trusted")
    if isinstance(error, aiosmtplib.SMTPResponseException) and not _LOWEST <= error.code <= _HIGHEST:
        return DeliveryError(_NO_SMTP)
    match error:
        case aiosmtplib.SMTPDataError():
            return DeliveryError(f"the mail server refused the message ({_status(error)})", permanent=_is_final(error))
        case aiosmtplib.SMTPAuthenticationError():
            return DeliveryError(f"the mail server refused the login ({_status(error)})")
        case aiosmtplib.SMTPSenderRefused():
            return DeliveryError(f"the mail server refused the sender ({_status(error)})")
        case aiosmtplib.SMTPResponseException():
            return DeliveryError(f"the mail server refused to talk ({_status(error)})")
        case TimeoutError():
            return DeliveryError("the mail server did not answer in time")
        case aiosmtplib.SMTPServerDisconnected():
            return DeliveryError("the mail server broke off the connection")
        case aiosmtplib.SMTPConnectError() | OSError():
            return DeliveryError("the mail server cannot be reached")
    return DeliveryError(_NO_SMTP)


def _is_final(error: aiosmtplib.SMTPResponseException) -> bool:
    return _LAST_TEMPORARY < error.code < 600


def _may_pass(error: aiosmtplib.SMTPResponseException) -> bool:
    """Tell whether a recipient that is refused now may be accepted later."""
    enhanced = _ENHANCED.match(error.message)
    return not _is_final(error) or error.code in _LATER or bool(enhanced and _POLICY.match(enhanced[0]))


def _status(error: aiosmtplib.SMTPResponseException) -> str:
    """Return the numbers of an answer, never its words."""
    enhanced = _ENHANCED.match(error.message)
    return f"{error.code} {enhanced[0]}" if enhanced else str(error.code)


def _listed(refused: list[tuple[int, str]]) -> str:
    return "; ".join(f"recipient {place} is refused ({status})" for place, status in refused)


# The message


def _for_transport(xml: bytes) -> str:
    """Return an ADF document as a body that arrives as it left: ASCII, no long lines, none that mbox files change."""
    lines = []
    for line in to_ascii_xml(xml.replace(b"\r\n", b"\n")).split(b"\n"):
        if line.startswith(b"From "):
            # Stores in mbox form put a > before such a line. It is text, never markup, so a reference is the same.
            rest = line.removeprefix(b"From ")
            lines.append(b"&#70;rom" + (b" " if len(line) + 4 <= LONGEST_LINE else b"\n") + rest)
        else:
            lines.append(line)
    return b"\n".join(lines).decode("ascii")


def _attach(message: EmailMessage, calendar: bytes) -> None:
    method = _METHOD.search(calendar)
    message.add_attachment(
        calendar,
        maintype="text",
        subtype="calendar",
        cte="base64",
        filename="appointment.ics",
        params={"charset": "utf-8", "method": method[1].decode() if method else "PUBLISH"},
    )


def _one_line(name: str) -> str:
    """Return a name without anything that controls: line ends, escapes, marks that turn text around, halves."""
    kept = "".join(" " if unicodedata.category(letter)[0] in "CZ" else letter for letter in name)
    return " ".join(kept.split())[:_LONGEST_NAME].rstrip()


def _identified(delivery_id: str) -> str:
    """Return a delivery's id as the left side of a Message-ID: as it is where it may stand there, else its hash."""
    if _ID.fullmatch(delivery_id) and len(delivery_id) <= _LONGEST_NAME:
        return delivery_id
    return sha256(delivery_id.encode("utf-8", "replace")).hexdigest()


SETTINGS: Final = EmailSettings
TARGET: Final = EmailTarget
