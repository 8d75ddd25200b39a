"""An authorization server on this machine: its two public documents, and tokens that it signs."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

__all__ = ["bearer", "issuer"]

SIGNING: Final = ec.generate_private_key(ec.SECP256R1())


@contextmanager
def issuer() -> Iterator[str]:
    """Run the server until the block ends; gives its address."""
    public = {**jwt.algorithms.ECAlgorithm.to_jwk(SIGNING.public_key(), as_dict=True), "kid": "k", "alg": "ES256"}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            base = f"http://127.0.0.1:{self.server.server_port}"  # type: ignore[attr-defined]
            documents = {
                "/.well-known/oauth-authorization-server": {"issuer": base, "jwks_uri": f"{base}/keys"},
                "/keys": {"keys": [public]},
            }
            found = self.path in documents
            self.send_response(200 if found else 404)
            self.end_headers()
            self.wfile.write(json.dumps(documents.get(self.path)).encode())

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def bearer(address: str, **claims: Any) -> str:
    """Return an `Authorization` header with a token of the issuer at this address, for the audience `dealer`."""
    said = {"iss": address, "aud": "dealer", "sub": "agent", "exp": int(datetime.now(UTC).timestamp()) + 60}
    return "Bearer " + jwt.encode({**said, **claims}, SIGNING, "ES256", {"kid": "k"})
