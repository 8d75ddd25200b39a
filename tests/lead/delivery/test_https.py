"""Posts over real HTTPS with an authority of the tests' own: what arrives, what is refused, and where nothing goes."""

import asyncio
import json
import logging
import socket
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest
from tests.lead.adf.sample import CASES
from tests.lead.delivery.mail_server import Authority
from tests.lead.delivery.web_server import ACCEPTED, HOST, WebServer, answer, web_server

from forecourt.lead.adf import ADFOptions, check, to_adf
from forecourt.lead.delivery import DeliveryError, Kind, Parcel, TargetError, open_target
from forecourt.lead.delivery.event import render_event
from forecourt.lead.delivery.signature import sign, verify_signature

ADF: Final = to_adf(CASES["vehicle"][0], ADFOptions(seven_bit=True))
SECRET: Final = "a secret of the CRM's own"
NAME: Final = "crm.example.com"

Result = TypeVar("Result")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return an authority whose certificates the targets trust."""
    return Authority(tmp_path_factory.mktemp("authority"))


def parcel(content: bytes = ADF, *, kind: Kind = "adf", delivery_id: str = "del_01JT") -> Parcel:
    """Return a parcel."""
    return Parcel(delivery_id, "lead_1", kind, "Demo Toyota", content)


async def send(settings: dict[str, Any], *parcels: Parcel) -> None:
    """Send parcels to a target one after the other."""
    opened = open_target({"via": "https", "timeout": 10, **settings})
    try:
        for each in parcels:
            await opened.send(each)
    finally:
        await opened.close()


class Crm:
    """A CRM behind HTTPS, with the settings of a target that may post to it."""

    def __init__(self, authority: Authority) -> None:
        """Trust the authority."""
        self.authority = authority

    def run(self, act: Callable[[WebServer, dict[str, Any]], Coroutine[Any, Any, Result]], *answers: Any) -> Result:
        """Do something with the running server."""

        async def run() -> Result:
            server = WebServer(list(answers) or [ACCEPTED])
            async with web_server(server, self.authority.context(HOST, "localhost", NAME)) as running:
                url = f"https://{HOST}:{running.port}/leads?store=7"
                return await act(running, {"url": url, "allow_private": True, "ca_file": self.authority.file})

        return asyncio.run(run())

    def posted(self, *parcels: Parcel, **more: Any) -> WebServer:
        """Return the server after it took these parcels."""

        async def act(server: WebServer, settings: dict[str, Any]) -> WebServer:
            await send({**settings, **more}, *parcels)
            return server

        return self.run(act)

    def refused(self, *answers: Any, **more: Any) -> DeliveryError:
        """Return the error of a delivery that is answered so."""

        async def act(_server: WebServer, settings: dict[str, Any]) -> DeliveryError:
            with pytest.raises(DeliveryError) as caught:
                await send({**settings, **more}, parcel())
            assert caught.value.__cause__ is None
            return caught.value

        return self.run(act, *answers)


@pytest.fixture
def crm(authority: Authority) -> Crm:
    """Return a CRM."""
    return Crm(authority)


# What arrives


def test_a_lead_is_posted_as_adf(crm: Crm) -> None:
    (posted,) = crm.posted(parcel()).posted
    assert posted.line == "POST /leads?store=7 HTTP/1.1"
    assert posted.headers["content-type"] == ["application/x-adf+xml"]
    assert posted.headers["forecourt-delivery"] == ["del_01JT"]
    assert posted.body == ADF
    assert check(posted.body) == []
    assert "forecourt-signature" not in posted.headers
    assert not {"cookie", "authorization", "referer"} & posted.headers.keys()


def test_a_crm_may_want_text_xml(crm: Crm) -> None:
    (posted,) = crm.posted(parcel(), content_type="text/xml").posted
    assert posted.headers["content-type"] == ["text/xml"]


def test_an_event_is_posted_as_json(crm: Crm) -> None:
    event = render_event("lead.status_changed", "lead_1", "working", datetime(2026, 4, 30, tzinfo=UTC))
    (posted,) = crm.posted(parcel(event, kind="event"), content_type="text/xml").posted
    assert posted.headers["content-type"] == ["application/json"]
    assert json.loads(posted.body)["type"] == "aap.event"


def test_a_notice_is_not_for_machines(crm: Crm) -> None:
    with pytest.raises(DeliveryError, match="no notices") as caught:
        crm.posted(parcel(kind="notice"))
    assert caught.value.permanent


def test_what_is_posted_is_signed(crm: Crm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CRM_SECRET", SECRET)
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    for more in ({"secret_env": "CRM_SECRET"}, {"secret_file": str(tmp_path / "secret")}):
        (posted,) = crm.posted(parcel(), **more).posted
        (header,) = posted.headers["forecourt-signature"]
        assert verify_signature(SECRET, header, posted.body)
        assert not verify_signature(SECRET, header, posted.body + b" ")
        assert abs(int(header.partition(",")[0].removeprefix("t=")) - time.time()) < 60


def test_while_a_secret_is_exchanged_both_sign(crm: Crm, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"a secret of tomorrow\r\n\n{SECRET}\n")
    (posted,) = crm.posted(parcel(), secret_file=str(tmp_path / "secret")).posted
    (header,) = posted.headers["forecourt-signature"]
    assert header.count("v1=") == 2
    for secret in ("a secret of tomorrow", SECRET):
        assert verify_signature(secret, header, posted.body)
    # Receivers that keep the last of several v1 know the old one still.
    assert dict(member.split("=") for member in header.split(",")) == dict(
        member.split("=") for member in sign(SECRET, posted.body, int(header[2:12])).split(",")
    )


def test_the_same_delivery_has_the_same_id_on_every_try(crm: Crm) -> None:
    async def act(server: WebServer, settings: dict[str, Any]) -> list[str]:
        opened = open_target({"via": "https", **settings})
        with pytest.raises(DeliveryError):
            await opened.send(parcel())
        await opened.send(parcel())
        await opened.close()
        return [posted.headers["forecourt-delivery"][0] for posted in server.posted]

    assert crm.run(act, answer("503 Busy"), ACCEPTED) == ["del_01JT", "del_01JT"]


@pytest.mark.parametrize("delivery_id", ["a\r\nX-Evil: 1", "a b", "", "ä", "a" * 201, "a\0"])
def test_an_id_adds_no_header(crm: Crm, delivery_id: str) -> None:
    with pytest.raises(DeliveryError, match="cannot stand in a header"):
        crm.posted(parcel(delivery_id=delivery_id))


def test_every_try_has_a_connection_of_its_own(crm: Crm) -> None:
    assert crm.posted(parcel(), parcel(), parcel()).connections == 3


def test_many_at_once_all_arrive(crm: Crm) -> None:
    async def act(server: WebServer, settings: dict[str, Any]) -> set[str]:
        opened = open_target({"via": "https", **settings})
        await asyncio.gather(*(opened.send(parcel(delivery_id=f"del_{number}")) for number in range(20)))
        await opened.close()
        await opened.close()
        return {posted.headers["forecourt-delivery"][0] for posted in server.posted}

    assert crm.run(act) == {f"del_{number}" for number in range(20)}


def test_nothing_is_logged_of_a_post(crm: Crm, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        assert len(crm.posted(parcel()).posted) == 1
    assert not [record for record in caplog.records if record.name.startswith("http")]
    assert "store=7" not in caplog.text
    assert "Ada" not in caplog.text


# What an answer means


@pytest.mark.parametrize("status", ["200 OK", "201 Created", "202 Accepted", "204 No Content", "299 Fine"])
def test_any_2xx_is_delivered(crm: Crm, status: str) -> None:
    async def act(_server: WebServer, settings: dict[str, Any]) -> None:
        await send(settings, parcel())

    crm.run(act, f"HTTP/1.1 {status}\r\n\r\n".encode() if status.startswith("204") else answer(status, body=b"ok"))


@pytest.mark.parametrize(
    ("status", "permanent"),
    [
        (300, True), (301, True), (302, False), (303, False), (304, True), (307, False), (308, True),
        (400, True), (401, True), (403, True), (404, True), (405, True), (408, False), (409, True), (410, True),
        (413, True), (415, True), (422, True), (425, False), (429, False), (499, True),
        (500, False), (501, False), (502, False), (503, False), (504, False), (599, False),
    ],
)  # fmt: skip
def test_any_other_status_is_tried_again_or_not(crm: Crm, status: int, permanent: bool) -> None:
    error = crm.refused(answer(f"{status} Ada Lovelace", "Location: https://example.com/", body=b"Ada Lovelace"))
    assert error.permanent is permanent
    assert str(status) in error.reason
    assert "Ada" not in error.reason


def test_a_redirect_is_not_followed(crm: Crm) -> None:
    async def act(server: WebServer, settings: dict[str, Any]) -> int:
        server.answers = [answer("307 Elsewhere", f"Location: https://{HOST}:{server.port}/other"), ACCEPTED]
        with pytest.raises(DeliveryError, match="not followed"):
            await send(settings, parcel())
        return len(server.posted)

    assert crm.run(act) == 1


def in_seconds(seconds: float) -> str:
    """Return an HTTP date."""
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("120", 120, 120),
        ("0", 0, 0),
        (" 7 ", 7, 7),
        ("999999999999", 86_400, 86_400),
        (in_seconds(3600), 3000, 3600),
        (in_seconds(-3600), 0, 0),
        (in_seconds(10**7), 86_400, 86_400),
    ],
    # Not the dates themselves: workers that collect at different moments must find the same tests.
    ids=["seconds", "zero", "spaces", "too long", "a date", "a past date", "a far date"],
)
@pytest.mark.parametrize("status", ["503 Busy", "429 Slow down"])
def test_the_other_side_says_when(crm: Crm, status: str, header: str, least: float, most: float) -> None:
    error = crm.refused(answer(status, f"Retry-After: {header}"))
    assert error.retry_after is not None
    assert least <= error.retry_after <= most


@pytest.mark.parametrize("header", ["", "soon", "-1", "1.5", "1e9", "Thu, 99 Foo 2026 99:99:99 GMT", "9" * 400])
def test_a_wait_that_cannot_be_read_is_none(crm: Crm, header: str) -> None:
    error = crm.refused(answer("503 Busy", f"Retry-After: {header}"))
    assert (error.permanent, error.retry_after) == (False, None)


# Servers that misbehave


async def _silence(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def _drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a header that never ends, a byte now and then."""
    writer.write(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.02)


async def _endless(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Accept, with a body without end."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n")
        await writer.drain()


async def _continues(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say 100 for ever."""
    while True:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await writer.drain()
        await asyncio.sleep(0.001)


async def _hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


IN_TIME: Final = "the host did not answer in time"
BROKEN: Final = "the host broke off the connection, or does not speak HTTP"


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (_silence, IN_TIME),
        (_drip, IN_TIME),
        (_continues, IN_TIME),
        (_hang_up, BROKEN),
        (b"220 mail.example.com ESMTP\r\n", IN_TIME),  # waits for the rest of a line that may yet be one
        (b"220 mail.example.com ESMTP\r\n\r\n", BROKEN),
        (b"\x00\xff" * 100, None),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000, BROKEN),
        (b"HTTP/1.1 20x OK\r\n\r\n", BROKEN),
    ],
)
def test_a_host_that_misbehaves_is_tried_again(crm: Crm, act: Any, told: str | None) -> None:
    error = crm.refused(act, timeout=0.5)
    assert not error.permanent
    assert told is None or error.reason == told


def test_a_body_without_end_is_not_read(crm: Crm) -> None:
    async def act(_server: WebServer, settings: dict[str, Any]) -> None:
        await send(settings, parcel())

    crm.run(act, _endless)


def test_a_body_that_would_unpack_without_end_is_not_unpacked(crm: Crm) -> None:
    async def act(_server: WebServer, settings: dict[str, Any]) -> None:
        await send(settings, parcel())

    crm.run(act, answer("200 OK", "Content-Encoding: gzip", body=b"no gzip"))


def test_a_host_that_is_not_there_is_tried_again(authority: Authority) -> None:
    with socket.create_server((HOST, 0)) as held:
        port = held.getsockname()[1]
    with pytest.raises(DeliveryError) as caught:
        asyncio.run(send({"url": f"https://{HOST}:{port}/", "allow_private": True}, parcel()))
    assert (caught.value.reason, caught.value.permanent) == ("the host cannot be reached", False)


def test_a_host_that_does_not_speak_tls_gets_nothing() -> None:
    async def run() -> WebServer:
        async with web_server(WebServer()) as server:
            url = f"https://{HOST}:{server.port}/"
            with pytest.raises(DeliveryError) as caught:
                await send({"url": url, "allow_private": True, "timeout": 1.0}, parcel())
            assert (caught.value.reason, caught.value.permanent) == ("the host cannot be reached", False)
            return server

    assert not asyncio.run(run()).posted


def test_a_certificate_of_nobody_gets_nothing(crm: Crm) -> None:
    error = crm.refused(ca_file=None)
    assert error.reason == "the host's certificate cannot be trusted"
    assert not error.permanent


def test_a_certificate_of_another_host_gets_nothing(authority: Authority) -> None:
    async def run() -> WebServer:
        async with web_server(WebServer(), authority.context("other.example.com")) as server:
            url = f"https://localhost:{server.port}/"
            with pytest.raises(DeliveryError, match="certificate"):
                await send({"url": url, "allow_private": True, "ca_file": authority.file}, parcel())
            return server

    assert not asyncio.run(run()).posted


# Where nothing goes


class Names:
    """A resolver of the tests' own: each look-up of a name takes its next answer, the last again and again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: list[list[str]]) -> None:
        """Stand in front of the system's resolver."""
        self.asked: list[str] = []
        self._answers = {name.replace("_", "."): list(each) for name, each in answers.items()}
        self._real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._look_up)

    def _look_up(self, host: Any, port: Any, *rest: Any, **more: Any) -> Any:
        if host not in self._answers:
            return self._real(host, port, *rest, **more)
        self.asked.append(host)
        script = self._answers[host]
        addresses = script.pop(0) if len(script) > 1 else script[0]
        return [found for address in addresses for found in self._real(address, port, *rest, **more)]


def test_the_connection_goes_to_the_address_that_was_checked(crm: Crm, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is looked up once; a second look-up would lead to an address where nobody listens."""
    names = Names(monkeypatch, crm_example_com=[[HOST], ["127.0.0.9"]])

    async def act(server: WebServer, settings: dict[str, Any]) -> WebServer:
        await send({**settings, "url": f"https://{NAME}:{server.port}/leads"}, parcel())
        return server

    server = crm.run(act)
    assert names.asked == [NAME]
    assert server.names == [NAME]
    assert server.posted[0].headers["host"] == [f"{NAME}:{server.port}"]


def test_the_next_address_is_tried_when_one_does_not_answer(crm: Crm, monkeypatch: pytest.MonkeyPatch) -> None:
    Names(monkeypatch, crm_example_com=[["127.0.0.9", "127.0.0.8", HOST]])

    async def act(server: WebServer, settings: dict[str, Any]) -> int:
        await send({**settings, "url": f"https://{NAME}:{server.port}/leads"}, parcel())
        return len(server.posted)

    assert crm.run(act) == 1


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"],
)
def test_a_name_of_a_private_address_gets_nothing(crm: Crm, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    Names(monkeypatch, crm_example_com=[[address]])

    async def act(server: WebServer, settings: dict[str, Any]) -> int:
        url = f"https://{NAME}:{server.port}/leads"
        with pytest.raises(DeliveryError) as caught:
            await send({**settings, "url": url, "allow_private": False}, parcel())
        assert caught.value.reason == "the host is at no public address; allow_private permits others"
        assert not caught.value.permanent
        return server.connections

    assert crm.run(act) == 0


def test_a_private_address_in_the_url_gets_nothing(crm: Crm) -> None:
    assert "no public address" in crm.refused(allow_private=False).reason


def test_a_name_that_is_not_found_is_tried_again() -> None:
    with pytest.raises(DeliveryError) as caught:
        asyncio.run(send({"url": "https://nothing.invalid/"}, parcel()))
    assert (caught.value.reason, caught.value.permanent) == ("the host's name cannot be found", False)


def test_http_goes_to_this_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(url: str) -> WebServer:
        async with web_server(WebServer()) as server:
            await send({"url": url.format(server.port), "allow_http": True}, parcel())
            return server

    assert asyncio.run(run("http://127.0.0.1:{}/leads")).posted[0].body == ADF
    assert asyncio.run(run("http://localhost:{}/leads")).posted[0].body == ADF
    Names(monkeypatch, localhost=[["10.1.2.3"]])
    with pytest.raises(DeliveryError, match="not this machine"):
        asyncio.run(run("http://localhost:{}/leads"))


def test_proxies_of_the_environment_are_passed_over(crm: Crm, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert len(crm.posted(parcel()).posted) == 1


# Settings


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"url": "http://crm.example.com/"}, "url: must begin with https://"),
        ({"url": "http://crm.example.com/", "allow_http": True}, "url: must begin with https://"),
        ({"url": "http://10.0.0.1/", "allow_http": True, "allow_private": True}, "url: must begin with https://"),
        ({"url": "http://127.0.0.1/"}, "url: must begin with https://"),
        ({"url": "ftp://crm.example.com/"}, "url: must begin with https:// and a host"),
        ({"url": "https:///leads"}, "url: must begin with https:// and a host"),
        ({"url": "crm.example.com"}, "url: must begin with https:// and a host"),
        ({"url": "https://[::1/"}, "url: cannot be read"),
        ({"url": "https://crm.example.com:99999/"}, "url: cannot be read"),
        ({"url": "https://user:hush@crm.example.com/"}, "url: must hold neither credentials nor a fragment"),
        ({"url": "https://crm.example.com/#x"}, "url: must hold neither"),
        ({"url": "https://crm.example.com/a b"}, "url: must be ASCII without blanks"),
        ({"url": "https://crm.example.com/\r\nX: y"}, "url: must be ASCII without blanks"),
        ({"url": "https://crm.exämple.com/"}, "url: must be ASCII"),
        ({"url": "https://crm.example.com\\@evil.example.com/"}, "url: must"),
        ({"allowed_hosts": ["other.example.com"]}, "url: its host is not one of allowed_hosts"),
        ({"allowed_hosts": [".rm.example.com"]}, "url: its host is not one of allowed_hosts"),
        ({"secret_env": "SHORT"}, "secret: must be at least 16 characters long"),
        ({"secret_env": "MANY"}, "secret: at most 3 lines"),
        ({"secret_env": "ABSENT"}, "secret_env: there is no such variable"),
        ({"content_type": "text/html"}, "content_type: Invalid enum value"),
        ({"ca_file": "/nonexistent"}, "ca_file: is no file of PEM certificates"),
        ({"timeout": 1000}, "timeout: Expected `float` <= 300.0"),
        ({"secret": SECRET}, "Object contains unknown field `secret`"),
        ({"url": ""}, "url: Expected `str` of length >= 1"),
    ],
)
def test_a_target_that_cannot_work_is_told_by_its_key(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], told: str
) -> None:
    monkeypatch.setenv("SHORT", "hush")
    monkeypatch.setenv("MANY", "\n".join(f"a secret of many, no. {number}" for number in range(4)))
    monkeypatch.delenv("ABSENT", raising=False)
    with pytest.raises(TargetError) as caught:
        open_target({"via": "https", "url": "https://crm.example.com/leads", **more})
    assert str(caught.value).startswith(told)
    assert "\n" not in str(caught.value)
    assert "hush" not in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("allowed", ["crm.example.com", "CRM.example.com", ".example.com"])
def test_a_host_that_is_allowed_is_opened(allowed: str) -> None:
    settings = {"url": "https://Crm.Example.com/leads", "allowed_hosts": ["other.example.com", allowed]}
    assert open_target({"via": "https", **settings}).kind == "https"
