"""A small identity provider on a real socket, with the claims that a test sets."""

import base64
import hashlib
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote_plus, urlsplit

import msgspec
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from horae.env import system_env
from horae.server.http.listener import HttpListener
from horae.server.reply import Response, ok


class Provider:
    """A provider that signs `claims`; `now` is its clock."""

    def __init__(self, now: int) -> None:
        self.key = ECKey.generate_key("P-256", parameters={"kid": "one"})
        self.shown = self.key  # in its set of keys
        self.algorithm = "ES256"
        self.now = now
        self.url = ""
        self.claims: dict[str, Any] = {"sub": "1", "preferred_username": "ada", "groups": ["platform"]}
        self.asked: list[dict[str, str]] = []
        self.clients: list[list[str]] = []  # the id and the secret in each request for tokens
        self.codes: dict[str, dict[str, str]] = {}
        self.listener = HttpListener(system_env(), self.answer)

    def authorise(self, url: str) -> str:
        """Do what a user's browser does: agree, and return with a code."""
        asked = dict(parse_qsl(urlsplit(url).query))
        self.codes["code-1"] = asked
        return "code-1"

    async def answer(self, scope: dict[str, Any], receive: Any) -> Response:
        path = scope["path"]
        if path == "/.well-known/openid-configuration":
            here = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
            return ok({**here, "authorization_endpoint": f"{self.url}/go", "token_endpoint": f"{self.url}/token"})
        if path == "/keys":
            return ok(KeySet([self.shown]).as_dict())
        basic = dict(scope["headers"])[b"authorization"].removeprefix(b"Basic ")
        self.clients.append([unquote_plus(part) for part in base64.b64decode(basic).decode().split(":")])
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        return self._exchange({name: values[0] for name, values in parse_qs(body.decode()).items()})

    def _exchange(self, form: dict[str, str]) -> Response:
        self.asked.append(form)
        begun = self.codes.pop(form["code"], None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
        if begun is None or begun["code_challenge"] != challenge.decode():
            return Response(400, msgspec.json.encode({"error": "invalid_grant"}))
        said = {"iss": self.url, "aud": "horae", "iat": self.now, "exp": self.now + 300, "nonce": begun["nonce"]}
        token = jwt.encode({"alg": self.algorithm, "kid": "one"}, {**said, **self.claims}, self.key)
        return ok({"id_token": token, "access_token": "at", "token_type": "Bearer"})
