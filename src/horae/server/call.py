"""A call: an admitted request with its caller, as a route receives it."""

import hashlib
from collections.abc import AsyncIterator, Mapping
from uuid import UUID

from horae.engine.server_node import ServerNode
from horae.errors import BadInput, NotFound
from horae.model.base.trace import TraceHeaders
from horae.model.tenancy.principal import Principal
from horae.server.http.proxies import Proxies
from horae.server.reading.bodies import read_pieces
from horae.server.reply import Receive, Scope
from horae.server.route import Route

NOBODY = Principal(namespace=0, role="nobody", key="", name="")
MOST_IDEMPOTENCY_KEY = 256


class ApiCall:
    """The request data that a route may use."""

    __slots__ = ("_receive", "body", "headers", "node", "route", "scope", "who")

    def __init__(
        self,
        node: ServerNode,
        route: Route,
        scope: Scope,
        headers: Mapping[bytes, bytes],
        who: Principal,
        body: bytes,
        receive: Receive,
    ) -> None:
        self.node, self.route, self.scope, self.headers, self.who, self.body = node, route, scope, headers, who, body
        self._receive = receive

    def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces. Only routes with `streams` use this; for other routes, `body` has the body."""
        return read_pieces(self._receive)

    def of(self, route: Route) -> "ApiCall":
        """Return a call of the same caller, without a body, to the route that reads the thing this route changes."""
        return ApiCall(self.node, route, self.scope, self.headers, self.who, b"", self._receive)

    @property
    def namespace(self) -> int:
        """Return the caller's namespace: one of the credential's, among which the request may choose."""
        return self.who.namespace

    @property
    def caller(self) -> str:
        return self.who.key if self.who.kind == "user" else f"key:{self.who.key}"

    @property
    def _proxies(self) -> Proxies:
        proxies: Proxies = self.scope["app"].proxies
        return proxies

    @property
    def secure(self) -> bool:
        """Return whether the client's connection is encrypted, to this server or to a trusted proxy."""
        return self._proxies.is_secure(self.scope, self.headers)

    @property
    def server_url(self) -> str:
        """Return this server's URL with the host in the client's request, or without one the server's announced URL."""
        host = self._proxies.host(self.scope, self.headers)
        return f"{'https' if self.secure else 'http'}://{host}" if host else self.node.fleet.presence.url

    @property
    def address(self) -> str:
        """Return the client's address, from the connection or from trusted proxies."""
        return self._proxies.client(self.scope)

    def path(self, name: str) -> str:
        """Return a parameter of the path."""
        value: str = self.scope["path_params"][name]
        return value

    def id(self, name: str = "id") -> UUID:
        """Return a parameter of the path that is an id. Raises NotFound for any other text."""
        text = self.path(name)
        try:
            return UUID(text)
        except ValueError:
            raise NotFound(
                f'"{text[:60]}" is not an id.', "Ids look like 0198c5a0-0000-7000-8000-000000000000."
            ) from None

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    @property
    def trace(self) -> TraceHeaders:
        """Return the request's trace from its headers; several `tracestate` headers are one list."""
        states = [value.decode("latin-1") for name, value in self.scope["headers"] if name == b"tracestate"]
        return TraceHeaders(self.header(b"traceparent"), ",".join(states) or None)

    def if_match(self) -> int | None:
        """Return the version in If-Match, on which the client's edit is based; None (`*` or no header) means any."""
        text = self.header(b"if-match")
        if text is None or text.strip() == "*":
            return None
        bare = text.strip().removeprefix("W/").strip('"').partition(".")[0]
        if not bare.isdecimal() or len(bare) > 9:
            remedy = 'Send the ETag of the job as you read it, such as If-Match: "3".'
            raise BadInput(f"If-Match {text[:40]!r} is not a version.", remedy, field="If-Match")
        return int(bare)

    def idempotency_key(self) -> str | None:
        key = self.header(b"idempotency-key")
        if key is not None and not 0 < len(key) <= MOST_IDEMPOTENCY_KEY:
            remedy = f"Use 1 to {MOST_IDEMPOTENCY_KEY} characters, such as a UUID."
            raise BadInput(f"The Idempotency-Key has {len(key)} characters.", remedy, field="Idempotency-Key")
        return key

    def fingerprint(self) -> bytes:
        """Return a digest of path, query and body, equal for repetitions of a request."""
        whole = hashlib.sha256(self.scope["path"].encode())
        for part in (self.scope["query_string"], self.body):
            whole.update(b"\0")
            whole.update(part)
        return whole.digest()
