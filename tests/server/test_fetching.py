"""Fetching a feed: bounded, conditional, and with credentials for their own origin alone."""

import base64
import io
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from tests.server.feed_server import Answer, FeedServer, feed_server

from forecourt.server.fetching import FetchBounds, Fetched, FetchError, fetch, is_address, shown


@pytest.fixture
def web() -> Iterator[FeedServer]:
    """A web server without pages."""
    with feed_server() as found:
        yield found


def refusal(address: str, bounds: FetchBounds | None = None) -> str:
    """Return why a fetch fails."""
    with pytest.raises(FetchError) as caught:
        fetch(address, io.BytesIO(), bounds=bounds)
    return str(caught.value)


def test_a_file_is_fetched_with_what_its_server_says_of_it(web: FeedServer) -> None:
    dated = {"ETag": '"1"', "Last-Modified": "Mon, 04 May 2026 12:00:00 GMT"}
    web.answers["/stock.csv"] = Answer(b"vin,price\n", headers=dated)
    into, told = io.BytesIO(), list[int]()
    found = fetch(web.address("/stock.csv?key=a%20b"), into, tell=told.append)
    assert found == Fetched(True, 10, '"1"', "Mon, 04 May 2026 12:00:00 GMT")
    assert into.getvalue() == b"vin,price\n"
    assert told == [10]
    path, headers = web.requests[0]
    assert path == "/stock.csv?key=a%20b"
    assert headers["user-agent"].startswith("forecourt/")
    assert "authorization" not in headers


def test_a_file_that_did_not_change_is_not_sent_again(web: FeedServer) -> None:
    web.answers["/stock.csv"] = Answer(b"vin,price\n", headers={"ETag": '"1"'})
    into = io.BytesIO()
    assert fetch(web.address("/stock.csv"), into, etag='"1"').modified is False
    assert into.getvalue() == b""
    assert fetch(web.address("/stock.csv"), into, etag='"0"').modified is True
    assert into.getvalue() == b"vin,price\n"


def test_the_time_of_the_last_answer_is_sent_back(web: FeedServer) -> None:
    web.answers["/stock.csv"] = Answer(status=304)
    moment = "Mon, 04 May 2026 12:00:00 GMT"
    assert fetch(web.address("/stock.csv"), io.BytesIO(), last_modified=moment).modified is False
    assert web.requests[0][1]["if-modified-since"] == moment
    assert "status 304" in refusal(web.address("/stock.csv"))


def test_credentials_go_to_their_own_origin_alone(web: FeedServer) -> None:
    with feed_server() as other:
        other.answers["/there"] = Answer(b"x")
        web.answers["/here"] = Answer(status=302, headers={"Location": "/next"})
        web.answers["/next"] = Answer(status=302, headers={"Location": other.address("/there")})
        assert fetch(web.address("/here", "sam:p%40ss@"), io.BytesIO()).size == 1
        sent = f"Basic {base64.b64encode(b'sam:p@ss').decode()}"
        assert [headers.get("authorization") for _, headers in web.requests] == [sent, sent]
        assert [headers.get("authorization") for _, headers in other.requests] == [None]


def test_redirects_are_followed_five_times_and_no_more(web: FeedServer) -> None:
    for hop in range(6):
        web.answers[f"/{hop}"] = Answer(status=307, headers={"Location": f"/{hop + 1}"})
    web.answers["/6"] = Answer(b"x")
    assert fetch(web.address("/1"), io.BytesIO()).size == 1
    assert refusal(web.address("/0")) == "more than 5 redirects"


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://feeds.example.com/stock.csv", "gopher://x/"])
def test_redirects_lead_to_http_alone(web: FeedServer, target: str) -> None:
    web.answers["/stock.csv"] = Answer(status=302, headers={"Location": target})
    assert refusal(web.address("/stock.csv")) == "only http and https addresses are fetched"


@pytest.fixture
def secure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FeedServer]:
    """An https server whose certificate this process trusts."""
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    with feed_server(tls) as found:
        yield found


def test_https_is_fetched_and_redirected_to_https(secure: FeedServer) -> None:
    secure.answers["/old.csv"] = Answer(status=301, headers={"Location": secure.address("/stock.csv")})
    secure.answers["/stock.csv"] = Answer(b"vin,price\n")
    into = io.BytesIO()
    assert fetch(secure.address("/old.csv"), into).size == 10
    assert into.getvalue() == b"vin,price\n"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_https_is_never_redirected_to_http(secure: FeedServer, web: FeedServer, status: int) -> None:
    web.answers["/stock.csv"] = Answer(b"vin,price\n")
    secure.answers["/stock.csv"] = Answer(status=status, headers={"Location": web.address("/stock.csv")})
    assert refusal(secure.address("/stock.csv", "sam:secret@")) == "127.0.0.1 redirects from https to http"
    assert web.requests == []


def test_http_may_be_redirected_to_https_without_the_credentials(secure: FeedServer, web: FeedServer) -> None:
    secure.answers["/stock.csv"] = Answer(b"vin,price\n")
    web.answers["/stock.csv"] = Answer(status=302, headers={"Location": secure.address("/stock.csv")})
    assert fetch(web.address("/stock.csv", "sam:secret@"), io.BytesIO()).size == 10
    assert ["authorization" in headers for _, headers in web.requests + secure.requests] == [True, False]


def test_a_certificate_that_nobody_vouches_for_is_refused(secure: FeedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    secure.answers["/stock.csv"] = Answer(b"vin,price\n")
    assert refusal(secure.address("/stock.csv")) == "the certificate of 127.0.0.1 cannot be trusted"
    assert secure.requests == []


def test_a_file_is_not_larger_than_it_may_be_whatever_is_announced(web: FeedServer) -> None:
    web.answers["/stock.csv"] = Answer(b"x" * 11)
    assert "larger" in refusal(web.address("/stock.csv"), FetchBounds(size=10))
    assert fetch(web.address("/stock.csv"), io.BytesIO(), bounds=FetchBounds(size=11)).size == 11


def test_a_file_that_breaks_off_is_none(web: FeedServer) -> None:
    web.answers["/stock.csv"] = Answer(b"x" * 10, promised=20)
    assert refusal(web.address("/stock.csv")) == "127.0.0.1 broke off in the middle of the file"


def test_a_server_that_says_nothing_is_not_waited_for_long(web: FeedServer) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/secret?token=abc"
        assert refusal(address, FetchBounds(silence=0.2)) == "127.0.0.1 did not answer in time"


@pytest.mark.parametrize("status", [401, 404, 500, 204])
def test_any_answer_but_a_file_is_a_failure(web: FeedServer, status: int) -> None:
    web.answers["/stock.csv"] = Answer(status=status)
    assert refusal(web.address("/stock.csv", "sam:secret@")) == f"127.0.0.1 answered with status {status}"


def test_an_address_nobody_listens_at_is_a_failure() -> None:
    with feed_server() as gone:
        address = gone.address("/stock.csv")
    assert "127.0.0.1" in refusal(address)
    assert refusal("http://127.0.0.1:99999/") == "the address cannot be read"


def test_a_source_is_shown_without_its_secrets() -> None:
    address = "https://sam:secret@feeds.example.com:8443/a/stock.csv?token=abc#x"
    assert shown(address) == "https://feeds.example.com:8443/a/stock.csv?…"
    assert shown("/srv/feeds/stock.csv") == "stock.csv"
    assert [is_address(each) for each in ("http://a/b", "HTTPS://a/b", "stock.csv", "ftp://a/b", "http")] == [
        True,
        True,
        False,
        False,
        False,
    ]
