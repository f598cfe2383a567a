"""OpenID Connect: users sign in at an identity provider, and their groups there determine their roles.

This is the authorization code flow with PKCE, state and nonce. Unfinished sign-ins are not stored. Instead, nonce and
verifier are computed from the state with a secret that the servers share. So any server can finish a sign-in, and a
flood of sign-ins does not fill the store. A cookie ensures that the browser that began a sign-in finishes it. authlib
is an optional dependency: `pip install horae[oidc]`.
"""

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

import msgspec
import structlog
from msgspec import Struct

from horae.engine.base.tokens import digest_of, new_cookie
from horae.engine.settings import OidcSettings
from horae.engine.tenancy.keys import BrowserSignIn
from horae.env import SECOND, Env, Micros
from horae.errors import Busy, Forbidden, Unauthorized
from horae.features.users.engine.oidc_flow import SignInFlow
from horae.features.users.engine.sign_ins import SignIns
from horae.features.users.model import Member
from horae.features.users.store import users as user_rows
from horae.model.tenancy.users import NAME, RoleMapping
from horae.outbound.allow import AllowedAddresses
from horae.outbound.fetch import Outbound, OutboundAnswer
from horae.store.admission import quotas
from horae.store.contract import Store

CALLBACK = "/api/v1/sign-in/oidc/callback"
FLOW_LIFE: Micros = 600 * SECOND  # how long a sign-in may take at the provider
CACHED_FOR = 600.0  # seconds for which the provider's document and keys are cached
FAILED_FOR = 10.0  # seconds after a failed read of them in which no other read is tried
WITHIN = 15.0  # seconds in which the provider must answer a request
LEEWAY = 60  # seconds by which the provider's clock may differ
# The accepted signature algorithms.
SAFE = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "EdDSA", "Ed25519")

log = structlog.get_logger("horae.engine")


class SignInRedirect(Struct, frozen=True):
    """The URL to which a browser is sent, and the state that its cookie must have when it returns."""

    url: str
    state: str


class Discovery(Struct, frozen=True):
    """The discovery document of a provider."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class Tokens(Struct, frozen=True):
    """The tokens that the provider returns in exchange for a code."""

    id_token: str
    access_token: str = ""


class Oidc:
    """Signs users in at one identity provider."""

    def __init__(
        self, env: Env, store: Store, sign_ins: SignIns, settings: OidcSettings, secret: Callable[[], bytes]
    ) -> None:
        """Take the settings. The function `secret` returns the secret that all servers of a store share."""
        self._env, self._store, self._sign_ins, self._settings = env, store, sign_ins, settings
        self._secret = secret
        self._outbound = Outbound(AllowedAddresses.read(settings.allow))
        # the cached discovery document, the provider's keys, and the expiry of the cache (monotonic)
        self._document: tuple[Discovery, Any, float] | None = None
        self._failure: tuple[Busy, float] | None = None  # the last failed read of them, and until when it counts
        self._reading = asyncio.Lock()

    @property
    def name(self) -> str:
        """The provider's name that users see: the host of its issuer."""
        return urlsplit(self._settings.issuer).hostname or self._settings.issuer

    async def begin(self, here: str) -> SignInRedirect:
        """Begin a sign-in, and return the URL of the provider to which the browser is sent.

        `here` is the URL of this server.
        """
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        document, _ = await self._provider()
        flow = SignInFlow.begin(self._secret(), new_cookie()[0], self._env.now() + FLOW_LIFE)
        asked = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": self._redirect(here),
            "scope": self._settings.scopes,
            "state": flow.state,
            "nonce": flow.nonce,
            "code_challenge": create_s256_code_challenge(flow.verifier),
            "code_challenge_method": "S256",
        }
        joint = "&" if "?" in document.authorization_endpoint else "?"
        return SignInRedirect(f"{document.authorization_endpoint}{joint}{urlencode(asked)}", flow.state)

    async def finish(self, code: str, state: str, here: str) -> BrowserSignIn:
        """Finish a sign-in: exchange the provider's code for the user's claims, and open a session."""
        flow, now = SignInFlow.read(self._secret(), state), self._env.now()
        if flow is None or now >= flow.until:
            raise Unauthorized(
                "This sign-in was not begun at this installation, or began too long ago.", "Sign in again."
            )
        tokens = await self._exchange(code, flow.verifier, here)
        claims = await self._claims(tokens, flow.nonce)
        if not await self._store.write(lambda: user_rows.use_flow(digest_of(state), flow.until, now)):
            raise Unauthorized("This sign-in was already finished.", "Sign in again.")
        return await self._admit(claims)

    async def close(self) -> None:
        await self._outbound.close()

    async def _admit(self, claims: dict[str, Any]) -> BrowserSignIn:
        """Open a session for the user with these claims; the user's groups determine the roles."""
        name = str(claims.get(self._settings.name_claim) or claims.get("email") or claims["sub"])
        if not NAME.fullmatch(name):
            detail = f"The identity provider gives you the name {name[:60]!r}, which is not valid here."
            raise Forbidden(detail, "Choose another claim for the name with the setting oidc_name_claim.")
        members = await self._members(claims.get(self._settings.groups_claim))
        if members:  # a user without any role cannot sign in, and so must not reserve a name
            await self._check_known(name, str(claims["sub"]))
        return await self._sign_ins.open(name, str(claims["sub"]), members, members)

    async def _check_known(self, name: str, subject: str) -> None:
        """Refuse a name that belongs to another user, because users of many providers choose their names themselves.

        A name belongs to the user who signed in with it first, because the audit log identifies users by name.
        """
        now = self._env.now()
        await self._store.write(lambda: user_rows.add(name, None, None, now, subject))
        known = await self._store.read(lambda: user_rows.find(name))
        if known is None:
            detail = f'There is a user whose name differs from "{name}" only in upper and lower case.'
            raise Forbidden(detail, "Ask an administrator.")
        if not known[0].is_active:
            raise Forbidden(f'The user "{name}" is deactivated.', "Ask an administrator.")
        remedy = f"Ask an administrator to delete that user first: horae users delete {name}"
        if known[1] is not None:
            raise Forbidden(f'"{name}" signs in with a password here.', remedy)
        if known[0].subject != subject:
            raise Forbidden(f'"{name}" belongs to another user of the identity provider.', remedy)

    async def _members(self, groups: Any) -> tuple[Member, ...]:
        """Return the memberships that a user's groups give.

        For each namespace, the first matching group in the setting `oidc_roles` counts.
        """
        mine = {groups} if isinstance(groups, str) else set(groups or ())
        mapped: dict[str, RoleMapping] = {}
        for group, what in self._settings.roles.items():
            if group in mine or group == "*":
                mapped.setdefault(what.namespace, what)
        members = []
        for name, what in sorted(mapped.items()):
            namespace = await self._store.read(lambda: quotas.namespace_named(name))  # noqa: B023
            if namespace is not None:
                members.append(
                    Member(namespace=namespace, namespace_name=name, role=what.role, permissions=what.permissions)
                )
        return tuple(members)

    async def _exchange(self, code: str, verifier: str, here: str) -> Tokens:
        from httpx2 import BasicAuth, Request

        document, _ = await self._provider()
        settings = self._settings
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect(here),
            "code_verifier": verifier,
            "client_id": settings.client_id,
        }
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        if settings.client_secret and "client_secret_basic" in document.token_endpoint_auth_methods_supported:
            basic = BasicAuth(quote_plus(settings.client_id), quote_plus(settings.client_secret))
            signed = next(basic.auth_flow(Request("POST", document.token_endpoint)))
            headers["authorization"] = signed.headers["authorization"]
        elif settings.client_secret:
            form["client_secret"] = settings.client_secret
        answer = await self._ask("POST", document.token_endpoint, headers, urlencode(form).encode())
        if answer.status != 200:
            log.warning("the identity provider did not exchange a code", status=answer.status)
            raise Unauthorized("The identity provider did not confirm this sign-in.", "Sign in again.")
        tokens: Tokens = _read(answer, Tokens)
        return tokens

    async def _claims(self, tokens: Tokens, nonce: str) -> dict[str, Any]:
        """Return the claims of the identity token after verifying it.

        It must be signed by the provider, be issued for this client, be valid now and have the nonce.
        """
        from authlib.oidc.core import CodeIDToken
        from joserfc import jwt
        from joserfc.errors import JoseError

        document, keys = await self._provider()
        try:
            try:
                token = jwt.decode(tokens.id_token, keys, algorithms=SAFE)
            except (JoseError, ValueError):
                document, keys = await self._provider(anew=True)  # the provider may have rotated its keys
                token = jwt.decode(tokens.id_token, keys, algorithms=SAFE)
            wanted = {
                "iss": {"essential": True, "value": document.issuer},
                "aud": {"essential": True, "value": self._settings.client_id},
            }
            params = {"nonce": nonce, "client_id": self._settings.client_id, "access_token": tokens.access_token}
            claims = CodeIDToken(token.claims, token.header, wanted, params)
            claims.validate(now=self._env.now() // SECOND, leeway=LEEWAY)
        except (JoseError, ValueError, KeyError, TypeError) as error:
            log.warning("an identity token was refused", error=str(error))
            raise Unauthorized("The identity provider's answer cannot be trusted.", "Sign in again.") from None
        return dict(claims)

    async def _provider(self, *, anew: bool = False) -> tuple[Discovery, Any]:
        """Return the provider's discovery document and keys; with `anew` they are not read from the cache.

        A failure is remembered, so that requests do not wait one after the other for a provider that does not answer.
        """
        async with self._reading:
            known, failure, now = self._document, self._failure, self._env.clock.monotonic()
            if known is not None and not anew and now < known[2]:
                return known[0], known[1]
            if failure is not None and now < failure[1]:
                raise failure[0].with_traceback(None)
            try:
                document, keys = await self._read_provider()
            except Busy as error:
                self._failure = error, self._env.clock.monotonic() + FAILED_FOR
                raise
            self._document = (document, keys, now + CACHED_FOR)
            return document, keys

    async def _read_provider(self) -> tuple[Discovery, Any]:
        from joserfc.jwk import KeySet

        where = f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        document = _read(await self._ask("GET", where), Discovery)
        if document.issuer.rstrip("/") != self._settings.issuer.rstrip("/"):
            raise Busy(f"{where} belongs to another issuer: {document.issuer}.", "Set oidc_issuer to this issuer.")
        return document, KeySet.import_key_set(_read(await self._ask("GET", document.jwks_uri), dict))

    async def _ask(
        self, method: str, url: str, headers: dict[str, str] | None = None, content: bytes = b""
    ) -> OutboundAnswer:
        try:
            return await self._outbound.fetch(
                method, url, headers=headers, content=content, most=1 << 20, within=WITHIN
            )
        except Exception as error:
            log.warning("the identity provider does not answer", url=url, error=str(error))
            raise Busy("The identity provider does not answer.", "Try again in a while.") from None

    def _redirect(self, here: str) -> str:
        return self._settings.redirect or here.rstrip("/") + CALLBACK


def _read(answer: OutboundAnswer, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        log.warning("the identity provider's answer cannot be read", url=answer.url, error=str(error))
        raise Busy("The identity provider's answer cannot be read.", "Check oidc_issuer.") from None
