"""What schemathesis needs to call a dealer over PAP: a Session Token, and a proof of its own for every request.

Loaded by `schemathesis run` in an environment of its own (SCHEMATHESIS_HOOKS), which has schemathesis and PyJWT.
"""

import base64
import hashlib
import json
import os
import secrets
import time
from typing import Any

import jwt
import schemathesis  # type: ignore[import-not-found]
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from jwt.algorithms import ECAlgorithm

BASE = "https://dealer.localhost"
TOKEN = os.environ["PAP_TOKEN"]
KEY: Any = load_pem_private_key(os.environ["PAP_KEY"].encode(), None)
JWK = json.loads(ECAlgorithm.to_jwk(KEY.public_key()))
ATH = base64.urlsafe_b64encode(hashlib.sha256(TOKEN.encode()).digest()).decode().rstrip("=")


@schemathesis.hook  # type: ignore[untyped-decorator]
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    """Put the credentials of the moment on a request; `ignored_auth` makes requests without them by other means."""
    del context, kwargs
    proof = {"jti": secrets.token_urlsafe(16), "htm": case.method, "htu": BASE + case.path, "iat": int(time.time())}
    proof["ath"] = ATH
    signed = jwt.encode(proof, KEY, "ES256", headers={"typ": "dpop+jwt", "jwk": JWK})
    case.headers["Authorization"] = f"DPoP {TOKEN}"
    case.headers["DPoP"] = signed
