"""Emails as real mail servers get them: what a CRM parses, what is encrypted, and what a refusal means."""

import asyncio
import email
import email.policy
import re
from collections.abc import Awaitable, Callable
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lead.adf.sample import CASES, RECEIVED, business, lead
from tests.lead.delivery.mail_server import HOST, Authority, MailServer, Received, mail_server, scripted

from forecourt.lead.adf import ADFOptions, check, to_adf
from forecourt.lead.delivery import DeliveryError, Kind, Parcel, TargetError, open_target
from forecourt.lead.delivery.calendar import invitation
from forecourt.lead.delivery.notice import notice

SEVEN_BIT: Final = ADFOptions(seven_bit=True)
TO: Final = "leads@crm.example.com"
SENDER: Final = "forecourt@dealer.example.com"
PASSWORD: Final = "correct horse"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return an authority whose certificates the targets trust."""
    return Authority(tmp_path_factory.mktemp("authority"))


def parcel(content: bytes = b"<adf/>", *, kind: Kind = "adf", vendor: str = "Demo Toyota", **more: Any) -> Parcel:
    """Return a parcel."""
    return Parcel(more.pop("delivery_id", "del_01JT"), "lead_1", kind, vendor, content, **more)


def target(port: int, **more: Any) -> dict[str, Any]:
    """Return the settings of a target at this port: in the clear unless something else is said."""
    plain = {} if more.get("tls") else {"starttls": "no"}
    return {"via": "email", "host": HOST, "port": port, "sender": SENDER, "to": [TO], "timeout": 10, **plain, **more}


async def send(settings: dict[str, Any], *parcels: Parcel) -> None:
    """Send parcels to a target one after the other."""
    opened = open_target(settings)
    try:
        for each in parcels:
            await opened.send(each)
    finally:
        await opened.close()


def delivered(*parcels: Parcel, **more: Any) -> list[Received]:
    """Send parcels to a mail server that takes everything, and return what it got."""

    async def run() -> list[Received]:
        async with mail_server(MailServer()) as server:
            await send(target(server.port, **more), *parcels)
            return server.received

    return asyncio.run(run())


def refused(server: MailServer, **more: Any) -> DeliveryError:
    """Return the error of a delivery that this server does not take."""

    async def run() -> DeliveryError:
        async with mail_server(server):
            with pytest.raises(DeliveryError) as caught:
                await send(target(server.port, **more), parcel())
            assert caught.value.__cause__ is None
            return caught.value

    return asyncio.run(run())


def parsed(received: Received) -> EmailMessage:
    """Return a message as a mail program reads it."""
    message = email.message_from_bytes(received.content, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    assert not message.defects
    return message


# What a CRM gets


@pytest.mark.parametrize("name", CASES)
def test_a_lead_arrives_as_a_single_part_of_7_bit_text_that_is_valid_adf(name: str) -> None:
    stored, options = CASES[name]
    adf = to_adf(stored, ADFOptions(seven_bit=True, condition_element=options.condition_element))
    (received,) = delivered(parcel(adf))
    message = parsed(received)
    assert not message.is_multipart()
    assert message.get_content_type() == "text/plain"
    assert message.get_content_charset() == "us-ascii"
    assert message["Content-Transfer-Encoding"] == "7bit"
    assert received.content.isascii()
    assert max(map(len, received.content.split(b"\r\n"))) <= 998
    assert b"\n" not in received.content.replace(b"\r\n", b"")
    body = received.content.partition(b"\r\n\r\n")[2]
    assert body.startswith(b'<?xml version="1.0" encoding="UTF-8"?>\r\n<?adf version="1.0"?>\r\n<adf>')
    assert check(body, condition_element=options.condition_element) == []
    assert ET.canonicalize(body.decode()) == ET.canonicalize(adf.decode())


def test_the_fields_of_the_lead_are_right() -> None:
    (received,) = delivered(parcel(to_adf(CASES["non-latin-names"][0], SEVEN_BIT)))
    root = ET.fromstring(parsed(received).get_content())
    assert root.findtext("prospect/id") == "lead_01JT0000000000000000000001"
    assert [name.text for name in root.findall("prospect/customer/contact/name")] == ["Zoë 花子", "Łukasiewicz 田中"]
    assert root.findtext("prospect/customer/contact/email") == "ada@example.com"
    assert root.findtext("prospect/vendor/vendorname") == "Demo Toyota San Francisco"
    assert (root.findtext("prospect/customer/comments") or "").startswith("こんにちは 🚗 Здравствуйте مرحبا\n")


def test_the_headers_say_who_and_which_delivery() -> None:
    first, again, other = delivered(parcel(), parcel(), parcel(delivery_id="del_2"), to=[TO, "desk@dealer.example.com"])
    message = parsed(first)
    assert message["From"] == SENDER
    assert message["To"] == f"{TO}, desk@dealer.example.com"
    assert message["Subject"] == "New lead for Demo Toyota"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Message-ID"] == "<del_01JT@dealer.example.com>" == parsed(again)["Message-ID"]
    assert parsed(other)["Message-ID"] == "<del_2@dealer.example.com>"
    assert message["Date"].datetime.tzinfo is not None
    assert sorted(message.keys()) == sorted(
        ["From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "Content-Type", "Content-Transfer-Encoding",
         "MIME-Version"]
    )  # fmt: skip
    assert (first.sender, first.to) == (SENDER, (TO, "desk@dealer.example.com"))


def test_the_server_is_greeted_by_the_sender_s_domain() -> None:
    async def run() -> list[str]:
        async with mail_server(MailServer()) as server:
            await send(target(server.port), parcel())
            return server.hello

    assert asyncio.run(run()) == ["dealer.example.com"]


def test_lines_that_begin_with_dots_and_from_arrive_as_they_were() -> None:
    text = ".\n..\n.\r\nQUIT\nFrom me\nFrom " + "x" * 993 + "\n" + "long " * 900 + "\n" + "ä" * 3000 + "\n\nend"
    adf = to_adf(lead(business(message=text)), SEVEN_BIT)
    (received,) = delivered(parcel(adf))
    assert b"\nFrom " not in received.content
    assert max(map(len, received.content.split(b"\r\n"))) <= 998
    body = received.content.partition(b"\r\n\r\n")[2]
    assert check(body) == []
    arrived = ET.fromstring(body).findtext("prospect/customer/comments") or ""
    # Long lines may have gained line ends; nothing else changed.
    kept = text.replace("\r\n", "\n")
    assert re.sub(r"\s", "", arrived).startswith(re.sub(r"\s", "", kept))
    assert arrived.startswith(".\n..\n.\nQUIT\nFrom me\nFrom")


def test_adf_in_utf_8_is_made_7_bit_too() -> None:
    (received,) = delivered(parcel(to_adf(CASES["non-latin-names"][0])))
    assert received.content.isascii()
    assert "花子" in ET.canonicalize(parsed(received).get_content())


@pytest.mark.parametrize(
    ("vendor", "subject"),
    [
        ("Demo Toyota", "New lead for Demo Toyota"),
        ("Autohaus Müller 花子", "New lead for Autohaus Müller 花子"),
        ("x\r\nBcc: all@example.com", "New lead for x Bcc: all@example.com"),
        ("x\n\n<adf>", "New lead for x <adf>"),
        ("x\x00\x1b[31m\u202ey\u2028z\ud800", "New lead for x [31m y z"),
        ("", "New lead"),
        ("\n", "New lead"),
        ("=?utf-8?q?x?=", None),
        ("a" * 500, "New lead for " + "a" * 120),
        ("車" * 500, "New lead for " + "車" * 120),
    ],
)
def test_the_dealership_is_named_in_the_subject_and_adds_no_header(vendor: str, subject: str | None) -> None:
    (received,) = delivered(parcel(vendor=vendor))
    message = parsed(received)
    assert message["Bcc"] is None
    assert len(message.keys()) == 9
    assert received.content.partition(b"\r\n\r\n")[0].isascii()
    if subject is not None:
        assert message["Subject"] == subject


@settings(max_examples=25)
@given(vendor=st.text(max_size=60), delivery_id=st.text(max_size=40))
def test_no_name_and_no_id_injects_anything(vendor: str, delivery_id: str) -> None:
    (received,) = delivered(parcel(vendor=vendor, delivery_id=delivery_id))
    message = parsed(received)
    assert len(message.keys()) == 9
    assert re.fullmatch(r"<[A-Za-z0-9_.-]+@dealer\.example\.com>", message["Message-ID"])
    assert message.get_content() == "<adf/>\r\n"


# What people get


def test_a_notice_is_plain_text_with_the_calendar_beside_it() -> None:
    stored = CASES["vehicle-and-trade-in-resent"][0]
    calendar = invitation(stored, stamped=RECEIVED)
    (received,) = delivered(parcel(notice(stored), kind="notice", calendar=calendar))
    message = parsed(received)
    text, attached = message.iter_parts()
    assert (text.get_content_type(), text.get_content_charset()) == ("text/plain", "utf-8")
    assert text.get_content().replace("\r\n", "\n") == notice(stored).decode()
    assert attached.get_content_type() == "text/calendar"
    assert attached.get_param("method") == "PUBLISH"
    assert attached.get_filename() == "appointment.ics"
    assert attached.get_payload(decode=True) == calendar
    assert received.content.isascii()


def test_a_notice_without_a_calendar_is_a_single_part() -> None:
    content = "Zoë 花子\n.\nFrom here\n".encode()
    (received,) = delivered(parcel(content, kind="notice"))
    assert not parsed(received).is_multipart()
    assert parsed(received).get_content().encode().replace(b"\r\n", b"\n") == content


def test_a_cancellation_is_attached_as_one() -> None:
    stored = CASES["vehicle-and-trade-in-resent"][0]
    cancelled = invitation(stored, stamped=RECEIVED, sequence=1, cancelled=True)
    (received,) = delivered(parcel(b"Cancelled", kind="notice", calendar=cancelled))
    assert next(iter(parsed(received).iter_attachments())).get_param("method") == "CANCEL"


def test_an_event_is_not_for_email() -> None:
    with pytest.raises(DeliveryError, match="no events") as caught:
        delivered(parcel(b"{}", kind="event"))
    assert caught.value.permanent


def test_content_that_is_no_text_is_refused_without_a_word_of_it() -> None:
    with pytest.raises(DeliveryError) as caught:
        delivered(parcel(b"<adf>Ada\xff</adf>"))
    assert (caught.value.reason, caught.value.permanent) == ("the content is no text that an email can hold", True)
    assert caught.value.__cause__ is None


# Encryption and login


def with_tls(
    authority: Authority, act: Callable[[MailServer], Awaitable[None]], *names: str, implicit: bool = False
) -> MailServer:
    """Run a server with STARTTLS (or TLS from the start), a certificate for these names, and one user."""

    async def run() -> MailServer:
        context = authority.context(*names)
        starttls, tls = (None, context) if implicit else (context, None)
        users = MailServer(users={"dealer": PASSWORD})
        async with mail_server(users, starttls=starttls, tls=tls, auth_require_tls=not implicit) as server:
            await act(server)
            return server

    return asyncio.run(run())


@pytest.fixture
def login(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the settings of the right login."""
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    return {"username": "dealer", "password_env": "MAIL_PASSWORD"}


@pytest.mark.parametrize("starttls", ["required", "if-offered"])
def test_starttls_comes_before_the_login(authority: Authority, login: dict[str, Any], starttls: str) -> None:
    async def act(server: MailServer) -> None:
        await send(target(server.port, starttls=starttls, ca_file=authority.file, **login), parcel())

    (received,) = with_tls(authority, act).received
    assert received.encrypted
    assert received.user == "dealer"


def test_a_connection_may_be_encrypted_from_the_start(authority: Authority, login: dict[str, Any]) -> None:
    async def act(server: MailServer) -> None:
        await send(target(server.port, tls=True, ca_file=authority.file, **login), parcel())

    (received,) = with_tls(authority, act, implicit=True).received
    assert received.user == "dealer"


@pytest.mark.parametrize("implicit", [False, True])
@pytest.mark.parametrize(("names", "trusted"), [((), False), (("other.example.com",), True)])
def test_a_certificate_that_cannot_be_trusted_gets_nothing(
    authority: Authority, login: dict[str, Any], names: tuple[str, ...], implicit: bool, trusted: bool
) -> None:
    async def act(server: MailServer) -> None:
        more = {"tls": True} if implicit else {"starttls": "if-offered"}
        with pytest.raises(DeliveryError) as caught:
            await send(
                target(server.port, **more, **login, **({"ca_file": authority.file} if trusted else {})), parcel()
            )
        assert caught.value.reason == "the mail server's certificate cannot be trusted"
        assert not caught.value.permanent

    server = with_tls(authority, act, *names, implicit=implicit)
    assert not server.received
    assert not server.logins


def test_a_server_without_starttls_gets_nothing_where_it_is_required() -> None:
    server = MailServer()
    error = refused(server, starttls="required")
    assert (error.reason, error.permanent) == ("the mail server offers no STARTTLS", False)
    assert not server.received


def test_a_server_without_starttls_gets_the_lead_where_it_is_not_required() -> None:
    (received,) = delivered(parcel(), starttls="if-offered")
    assert not received.encrypted


def test_a_wrong_password_may_be_right_later(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "wrong")

    async def act(server: MailServer) -> None:
        with pytest.raises(DeliveryError) as caught:
            await send(
                target(
                    server.port,
                    starttls="required",
                    ca_file=authority.file,
                    username="dealer",
                    password_env="MAIL_PASSWORD",
                ),
                parcel(),
            )
        assert caught.value.reason == "the mail server refused the login (535 5.7.8)"
        assert not caught.value.permanent

    assert not with_tls(authority, act).received


def test_text_that_slips_in_before_encryption_is_not_believed(authority: Authority) -> None:
    """RFC 3207 section 6: what came in the clear after 220 must not count as said under encryption."""

    async def run() -> None:
        script = [b"220 hi\r\n", b"250-hi\r\n250 STARTTLS\r\n", b"220 go\r\n250 injected\r\n250 injected\r\n"]
        async with scripted(script) as port:
            with pytest.raises(DeliveryError) as caught:
                await send(target(port, starttls="required", ca_file=authority.file, timeout=5), parcel())
            assert not caught.value.permanent

    asyncio.run(run())


# Refusals


@pytest.mark.parametrize(
    ("answer", "told", "permanent"),
    [
        ("450 4.2.0 Greylisted, ask leads@crm.example.com", "450 4.2.0", False),
        ("451 Try again", "451", False),
        ("452 4.2.2 Mailbox full", "452 4.2.2", False),
        ("550 5.1.1 No such user leads@crm.example.com", "550 5.1.1", True),
        ("550 No such user", "550", True),
        ("551 5.1.6 Moved", "551 5.1.6", True),
        ("553 5.1.3 Bad address", "553 5.1.3", True),
        ("554 5.4.14 Loop", "554 5.4.14", True),
        ("530 5.7.0 Authentication required", "530 5.7.0", False),
        ("550 5.7.1 Relaying denied", "550 5.7.1", False),
        ("552 5.2.2 Over quota", "552 5.2.2", False),
    ],
)
def test_a_refused_recipient_is_final_only_when_the_mailbox_is_the_reason(
    answer: str, told: str, permanent: bool
) -> None:
    error = refused(MailServer({TO: [answer]}))
    assert error.reason == f"recipient 1 is refused ({told})"
    assert error.permanent is permanent


@pytest.mark.parametrize(
    ("step", "answer", "told", "permanent"),
    [
        ("MAIL", "550 5.7.1 Not yours", "the mail server refused the sender (550 5.7.1)", False),
        ("MAIL", "451 Later", "the mail server refused the sender (451)", False),
        ("DATA", "451 4.3.0 Later", "the mail server refused the message (451 4.3.0)", False),
        ("DATA", "552 5.3.4 Too big", "the mail server refused the message (552 5.3.4)", True),
        ("DATA", "554 5.7.1 Spam", "the mail server refused the message (554 5.7.1)", True),
    ],
)
def test_what_a_refusal_means_depends_on_what_is_refused(step: str, answer: str, told: str, permanent: bool) -> None:
    server = MailServer({step: [answer]})
    error = refused(server)
    assert (error.reason, error.permanent) == (told, permanent)
    assert not server.received


def test_a_greylisted_message_arrives_once_on_the_second_try() -> None:
    async def run() -> MailServer:
        async with mail_server(MailServer({TO: ["450 4.7.1 Greylisted", "250 OK"]})) as server:
            opened = open_target(target(server.port))
            with pytest.raises(DeliveryError):
                await opened.send(parcel())
            await opened.send(parcel())
            return server

    assert len(asyncio.run(run()).received) == 1


BOTH: Final = ["a@example.com", "b@example.com"]


def test_nobody_gets_a_message_that_one_recipient_cannot_take_yet() -> None:
    """The next try would otherwise give the others a second one."""
    server = MailServer({"b@example.com": ["452 4.2.2 Full"]})
    error = refused(server, to=BOTH)
    assert (error.reason, error.permanent) == ("recipient 2 is refused (452 4.2.2)", False)
    assert not server.received


def test_the_others_get_a_message_that_one_recipient_will_never_take() -> None:
    server = MailServer({"a@example.com": ["550 5.1.1 Unknown"]})
    error = refused(server, to=BOTH)
    assert error.reason == "delivered to 1 of 2 recipients; recipient 1 is refused (550 5.1.1)"
    assert error.permanent
    assert [received.to for received in server.received] == [("b@example.com",)]


def test_recipients_that_are_all_refused_for_good_are_final() -> None:
    server = MailServer({address: ["550 Unknown"] for address in BOTH})
    error = refused(server, to=BOTH)
    assert error.reason == "recipient 1 is refused (550); recipient 2 is refused (550)"
    assert error.permanent


# Servers that misbehave


async def _silence(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def _drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a byte now and then: each read makes progress, the whole never ends."""
    while True:
        writer.write(b"2")
        await writer.drain()
        await asyncio.sleep(0.02)


async def _flood(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    for _ in range(100_000):
        writer.write(b"250-" + b"x" * 400 + b"\r\n")
        await writer.drain()


HELLO: Final = [b"220 hi\r\n", b"250 hi\r\n"]
NO_SMTP: Final = "the mail server does not offer what is needed, or does not speak SMTP"
IN_TIME: Final = "the mail server did not answer in time"
BROKEN: Final = "the mail server broke off the connection"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ([], "the mail server cannot be reached"),
        ([b"554 5.7.1 Go away\r\n"], "the mail server refused to talk (554 5.7.1)"),
        ([b"421 Busy\r\n"], "the mail server refused to talk (421)"),
        ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], NO_SMTP),
        ([b"\xff\x00\xff\r\n"], NO_SMTP),
        ([_silence], IN_TIME),
        ([_drip], IN_TIME),
        ([b"220 hi\r\n", _drip], IN_TIME),
        ([_flood], None),
        (HELLO[:1], BROKEN),
        (HELLO, BROKEN),
        ([*HELLO, b"421 Shutting down\r\n"], "the mail server refused the sender (421)"),
        ([*HELLO, b"250 ok\r\n"], BROKEN),
        ([*HELLO, b"250 ok\r\n", b"250 ok\r\n"], BROKEN),
        ([*HELLO, b"250 ok\r\n", b"250 ok\r\n", b"354 go\r\n"], BROKEN),
        ([*HELLO, b"250 ok\r\n", b"250 ok\r\n", b"354 go\r\n", _silence], IN_TIME),
    ],
)
def test_a_server_that_fails_at_any_step_is_tried_again(script: Any, told: str | None) -> None:
    async def run() -> DeliveryError:
        async with scripted(script) as port:
            with pytest.raises(DeliveryError) as caught:
                await send(target(port, timeout=0.5), parcel())
            return caught.value

    error = asyncio.run(run())
    assert told is None or error.reason == told
    assert not error.permanent
    assert "hi" not in error.reason.split()


def test_a_server_that_is_not_there_is_tried_again() -> None:
    async def run() -> int:
        async with scripted([]) as port:
            return port

    with pytest.raises(DeliveryError, match="cannot be reached"):
        asyncio.run(send(target(asyncio.run(run())), parcel()))


def test_a_server_that_never_says_goodbye_has_the_message() -> None:
    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n.\r\n")
        writer.write(b"250 taken\r\n")
        await writer.drain()

    async def run() -> None:
        async with scripted([*HELLO, b"250 ok\r\n", b"250 ok\r\n", b"354 go\r\n", take, b"garbage\r\n"]) as port:
            await send(target(port), parcel())

    asyncio.run(run())


def test_many_parcels_at_once_all_arrive() -> None:
    async def run() -> MailServer:
        async with mail_server(MailServer()) as server:
            opened = open_target(target(server.port))
            await asyncio.gather(*(opened.send(parcel(delivery_id=f"del_{number}")) for number in range(20)))
            return server

    received = asyncio.run(run()).received
    assert {parsed(each)["Message-ID"] for each in received} == {
        f"<del_{number}@dealer.example.com>" for number in range(20)
    }


def test_a_delivery_that_is_given_up_closes_its_connection() -> None:
    async def run() -> None:
        arrived, ended = asyncio.Event(), asyncio.Event()

        async def wait(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
            arrived.set()
            await reader.read()
            ended.set()

        async with scripted([b"220 hi\r\n", wait]) as port:
            task = asyncio.create_task(send(target(port), parcel()))
            await asyncio.wait_for(arrived.wait(), 10)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(ended.wait(), 10)

    asyncio.run(run())


# Settings


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"sender": "no address"}, "sender: must be a plain ASCII address such as leads@example.com"),
        ({"sender": "a@example.com\r\nBcc: b@example.com"}, "sender: must be a plain"),
        ({"sender": "a@example.com\n"}, "sender: must be a plain"),
        ({"sender": "Name <a@example.com>"}, "sender: must be a plain"),
        ({"to": []}, "to: needs at least one address"),
        ({"to": ["a@example.com", "b> NOTIFY=x <c@example.com"]}, "to: must be a plain"),
        ({"to": [f"a{number}@example.com" for number in range(101)]}, "to: takes at most 100 addresses"),
        ({"to": ["a@example.com", "A@example.com"]}, "to: names an address twice"),
        ({"to": ["ä@example.com"]}, "to: must be a plain"),
        ({"to": ["a" * 250 + "@example.com"]}, "to: must be a plain"),
        ({"host": "mail example"}, "host: must be the name or the address of a mail server, in ASCII"),
        ({"host": "mäil.example.com"}, "host: must be"),
        ({"port": 0}, "port: Expected `int` >= 1"),
        ({"starttls": "maybe"}, "starttls: Invalid enum value 'maybe'"),
        ({"timeout": 0}, "timeout: Expected `float` > 0.0"),
        ({"username": "dealer"}, "username: needs password_env or password_file"),
        ({"password_env": "MAIL_PASSWORD"}, "username: needs password_env or password_file"),
        ({"host": "mail.example.com", "username": "dealer", "password_env": "MAIL_PASSWORD"}, 'starttls: "no" would'),
        ({"ca_file": "/nonexistent"}, "ca_file: is no file of PEM certificates"),
        ({"password": PASSWORD}, "Object contains unknown field `password`"),
    ],
)
def test_a_target_that_cannot_work_is_told_by_its_key(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], told: str
) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    with pytest.raises(TargetError) as caught:
        open_target(target(25) | more)
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)
    assert PASSWORD not in str(caught.value)


def test_a_file_that_is_no_certificate_is_told(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(TargetError, match="ca_file: is no file of PEM certificates"):
        open_target(target(25, ca_file=str(tmp_path / "ca.pem")))


def test_the_port_follows_from_the_encryption() -> None:
    ports: list[int | None] = []

    async def run(**more: Any) -> None:
        settings = {"via": "email", "host": HOST, "sender": SENDER, "to": [TO], **more}
        opened: Any = open_target(settings)
        ports.append(opened.port)

    asyncio.run(run())
    asyncio.run(run(tls=True))
    asyncio.run(run(port=2525))
    assert ports == [587, 465, 2525]
