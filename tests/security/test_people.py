"""Users: they sign in with a password or at an identity provider, with the rights of their role, for a limited time."""

import socket
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import AsyncMock
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from argon2 import PasswordHasher
from joserfc.jwk import ECKey, OctKey

from horae.engine.server_node import ServerNode
from horae.engine.settings import DAY, EngineSettings, OidcSettings
from horae.engine.tenancy.keys import CACHED
from horae.engine.tenancy.throttle import MOST, Throttle, Trickle
from horae.env import SECOND, VirtualClock, virtual_env
from horae.errors import HoraeError, Unauthorized
from horae.features.audit_log.engine import MOST_FAILED
from horae.features.audit_log.part import AuditLogPart
from horae.features.users.engine.passwords import Passwords
from horae.features.users.part import UsersPart
from horae.model.tenancy.users import read_mapping
from horae.store.driver import one
from horae.store.script import Statement
from tests.security.people import Api, both
from tests.security.people import client as browser
from tests.security.provider import Provider

PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def fast_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use password hashes that take a millisecond; the cost of real ones is up to argon2."""
    monkeypatch.setattr(Passwords, "_hasher", PasswordHasher(1, 8, 1))


@pytest.fixture
async def provider(clock: VirtualClock) -> AsyncIterator[Provider]:
    made, sock = Provider(clock.now() // SECOND), socket.socket()
    sock.bind(("127.0.0.1", 0))
    made.url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    await made.listener.start(sock)
    yield made
    await made.listener.stop(0.1)


@pytest.fixture
def engine_settings(provider: Provider) -> EngineSettings:
    groups = {"platform": "default:admin", "readers": "default:viewer", "gone": "nowhere:admin"}
    roles = {group: read_mapping(group, text) for group, text in groups.items()}
    secret = "50% + a:b"
    oidc = OidcSettings(issuer=provider.url, client_id="horae", client_secret=secret, roles=roles, allow=("127.0.0.1",))
    return EngineSettings(oidc=oidc)


@pytest.fixture
async def admin(node: ServerNode) -> AsyncIterator[Api]:
    key = await node.tenancy.keys.ensure_admin_key()
    async with browser(node, authorization=f"Bearer {key}") as api:
        yield api


async def let_in(admin: Api, name: str = "ada", role: str = "editor", **more: Any) -> None:
    made = await admin.post("/api/v1/users", json={"name": name, "password": PASSWORD, "role": role, **more})
    assert made.status_code == 201, made.text


async def sign_in(node: ServerNode, name: str = "ada", password: str = PASSWORD) -> tuple[Api, httpx2.Response]:
    api = browser(node)
    answer = await api.post("/api/v1/sign-in/password", json={"name": name, "password": password})
    if answer.status_code == 200:
        api.headers["x-csrf-token"] = answer.json()["csrf"]
    return api, answer


@both
async def test_a_signed_in_user_has_the_rights_of_their_role(node: ServerNode, admin: Api):
    await let_in(admin)
    api, answer = await sign_in(node)
    assert answer.json()["role"] == "editor"
    made = await api.post("/api/v1/jobs", json={"name": "report", "http": {"url": "https://example.com"}})
    assert made.status_code == 201
    assert (await api.get("/api/v1/keys")).status_code == 403
    assert (await api.get("/api/v1/me")).json()["namespaces"] == ["default"]
    rows = (await admin.get("/api/v1/audit/log", params={"actor": "user:ada"})).json()["items"]
    assert [row["action"] for row in rows] == ["jobs.create", "me.sign-in-with-password"]
    await api.aclose()


@pytest.mark.parametrize(("proxy", "secure"), [("127.0.0.1", True), ("10.1.2.3", False)])
async def test_cookies_are_hidden_from_scripts_and_other_sites(node: ServerNode, admin: Api, proxy: str, secure: bool):
    await let_in(admin)
    api = browser(node, address=proxy, **{"x-forwarded-proto": "https"})
    answer = await api.post("/api/v1/sign-in/password", json={"name": "ada", "password": PASSWORD})
    parts = {part.strip().lower() for part in answer.headers["set-cookie"].split(";")}
    assert {"httponly", "samesite=lax", "path=/"} <= parts
    assert ("secure" in parts) == secure, "only a trusted proxy is believed"
    await api.aclose()


async def test_a_write_from_another_site_is_refused(node: ServerNode, admin: Api):
    await let_in(admin)
    api, _ = await sign_in(node)
    del api.headers["x-csrf-token"]
    assert (await api.get("/api/v1/jobs")).status_code == 200
    assert (await api.post("/api/v1/jobs", json={"name": "x", "command": ["true"]})).status_code == 403
    await api.aclose()


async def test_wrong_names_and_wrong_passwords_get_the_same_answer(node: ServerNode, admin: Api):
    await let_in(admin)
    _, wrong = await sign_in(node, password="wrong")
    _, unknown = await sign_in(node, "eve")
    assert (wrong.status_code, wrong.json()["detail"]) == (unknown.status_code, unknown.json()["detail"])
    assert wrong.status_code == 401


async def test_guessing_is_slowed_down_also_for_the_right_password(node: ServerNode, admin: Api, clock: VirtualClock):
    await let_in(admin)
    answers = [(await sign_in(node, password="wrong"))[1].status_code for _ in range(6)]
    assert answers == [401] * 5 + [429]
    _, right = await sign_in(node)
    assert right.status_code == 429
    assert int(right.headers["retry-after"]) >= 1
    clock.advance(2 * SECOND)
    assert (await sign_in(node))[1].status_code == 200


async def guess(node: ServerNode, address: str, password: str = "wrong", name: str = "ada") -> int:
    """Sign in from an address and return the status of the answer."""
    try:
        signed = await node.part(UsersPart).sign_ins.with_password(name, password, address)
    except HoraeError as error:
        return error.status
    assert signed.principal.name == name
    return 200


async def test_guesses_from_elsewhere_do_not_lock_a_user_out(node: ServerNode, admin: Api):
    await let_in(admin)
    for at in range(60):
        await guess(node, f"203.0.113.{at % 4}")  # the same network, repeatedly
        await guess(node, f"2001:db8::{at:x}")

    assert await guess(node, "203.0.113.200") == 429  # an address next to the guessers
    assert await guess(node, "2001:db8::ffff") == 429
    assert await guess(node, "198.51.100.7", PASSWORD) == 200
    assert await guess(node, "2001:db8:0:1::1", PASSWORD) == 200


@both
async def test_distributed_guesses_are_slow_and_known_addresses_pass(node: ServerNode, admin: Api, clock: VirtualClock):
    await let_in(admin)
    assert await guess(node, "198.51.100.7", PASSWORD) == 200
    answers = [await guess(node, f"10.{at >> 8}.{at & 255}.1") for at in range(300)]
    assert answers.count(401) in range(95, 106)
    assert set(answers[110:]) == {429}

    assert await guess(node, "192.0.2.1", PASSWORD) == 429  # never seen here
    assert await guess(node, "198.51.100.99", PASSWORD) == 200  # the network of the first sign-in
    node.part(UsersPart).sign_ins._networks.clear()  # as at another server
    assert await guess(node, "198.51.100.99", PASSWORD) == 200
    clock.advance(61 * SECOND)
    assert [await guess(node, f"10.9.{at}.1") for at in range(5)].count(401) <= 2
    assert await guess(node, "192.0.2.1", name="eve") == 401  # other users are not slowed down


async def test_a_known_address_guesses_slowly_too(node: ServerNode, admin: Api):
    await let_in(admin)
    assert await guess(node, "198.51.100.7", PASSWORD) == 200
    assert [await guess(node, "198.51.100.7") for _ in range(7)] == [401] * 5 + [429] * 2


def test_the_record_of_guesses_is_bounded():
    env = virtual_env()
    throttle, trickle = Throttle(env, 5), Trickle(env, 5, 1.0)
    for at in range(3 * MOST):
        throttle.guess(str(at))
        trickle.guess(str(at))
    assert len(throttle._wrong) == len(trickle._paid) == MOST


async def test_one_address_cannot_try_names_forever(node: ServerNode):
    answers = {(await sign_in(node, f"user{n}", "wrong"))[1].status_code for n in range(25)}
    assert 429 in answers


async def test_a_session_ends_when_idle_and_after_its_lifetime(node: ServerNode, admin: Api, clock: VirtualClock):
    await let_in(admin)
    away, _ = await sign_in(node)
    busy, _ = await sign_in(node)
    for _ in range(13):
        clock.advance(DAY // 2 + SECOND)
        assert (await busy.get("/api/v1/me")).status_code == 200
    assert (await away.get("/api/v1/me")).status_code == 401
    clock.advance(DAY // 2)
    assert (await busy.get("/api/v1/me")).status_code == 401
    for api in (away, busy):
        await api.aclose()


@pytest.mark.parametrize("end", ["disable", "delete", "password", "sign-out"])
async def test_sign_out_and_changes_of_a_user_end_sessions(node: ServerNode, admin: Api, end: str):
    await let_in(admin)
    api, _ = await sign_in(node)
    if end == "disable":
        await admin.patch("/api/v1/users/ada", json={"active": False})
    elif end == "delete":
        await admin.delete("/api/v1/users/ada")
    elif end == "password":
        await admin.patch("/api/v1/users/ada", json={"password": "another long password"})
    else:
        await api.post("/api/v1/sign-out")
    cookie = api.cookies.get("horae")
    assert (await browser(node, cookie=f"horae={cookie}").get("/api/v1/me")).status_code == 401
    await api.aclose()


@both
@pytest.mark.parametrize("change", ["disable", "delete", "password"])
async def test_a_change_of_a_user_during_a_sign_in_ends_the_sign_in(node: ServerNode, admin: Api, change: str):
    await let_in(admin)
    users, sign_ins = node.part(UsersPart).users, node.part(UsersPart).sign_ins
    user, proof = await sign_ins.authenticate("ada", PASSWORD, "10.0.0.1") or (None, "")
    assert user is not None
    if change == "disable":
        await users.set_active("ada", False)
    elif change == "delete":
        await users.delete("ada")
    else:
        await users.set_password("ada", "another long password")
    with pytest.raises(Unauthorized):
        await sign_ins.open("ada", proof, user.members, None)


@both
async def test_a_new_password_outlasts_a_concurrent_sign_in_with_an_old_hash(
    node: ServerNode, admin: Api, monkeypatch: pytest.MonkeyPatch
):
    await let_in(admin)
    users, passwords = node.part(UsersPart).users, node.part(UsersPart).sign_ins.passwords
    hashed = passwords.hash

    async def hash_late(password: str) -> str:
        monkeypatch.setattr(passwords, "hash", hashed)
        await users.set_password("ada", "another long password")
        return await hashed(password)

    monkeypatch.setattr(passwords, "is_old", lambda stored_hash: True)
    monkeypatch.setattr(passwords, "hash", hash_late)
    api, _ = await sign_in(node)

    assert (await api.get("/api/v1/me")).status_code == 401
    assert (await sign_in(node, password="another long password"))[1].status_code == 200
    await api.aclose()


async def test_a_session_in_use_lasts_however_short_the_time_without_requests_may_be(
    node: ServerNode, admin: Api, clock: VirtualClock
):
    await let_in(admin)
    node.part(UsersPart).sign_ins._idle = 60 * SECOND
    api, _ = await sign_in(node)
    for _ in range(10):
        clock.advance(20 * SECOND)
        assert (await api.get("/api/v1/me")).status_code == 200
    clock.advance(61 * SECOND)
    assert (await api.get("/api/v1/me")).status_code == 401
    await api.aclose()


async def test_ended_sessions_leave_nothing_in_memory(node: ServerNode, admin: Api):
    await let_in(admin)
    sign_ins = node.part(UsersPart).sign_ins
    for _ in range(3):
        api, _ = await sign_in(node)
        assert (await api.get("/api/v1/me")).status_code == 200
        assert (await api.post("/api/v1/sign-out")).status_code < 300
        await api.aclose()
    assert (sign_ins._known, sign_ins._members) == ({}, {})


async def test_a_change_of_another_user_does_not_hide_namespaces_from_a_request(node: ServerNode, admin: Api):
    await let_in(admin)
    assert (await admin.post("/api/v1/namespaces", json={"name": "shop"})).status_code == 201
    role = {"role": "viewer"}
    assert (await admin.put("/api/v1/users/ada/member", json=role, headers={"horae-namespace": "shop"})).is_success
    api, _ = await sign_in(node)
    sign_ins = node.part(UsersPart).sign_ins
    who = await sign_ins.check(str(api.cookies.get("horae")))
    assert who is not None

    sign_ins.forget()

    assert (await sign_ins.in_namespace(who, "shop")).namespace_name == "shop"
    await api.aclose()


async def test_changing_the_own_password_needs_the_current_one(node: ServerNode, admin: Api):
    await let_in(admin)
    api, _ = await sign_in(node)
    other, _ = await sign_in(node)
    wrong = await api.post("/api/v1/me/password", json={"current": "no", "password": "a new long password"})
    assert wrong.status_code == 403
    right = await api.post("/api/v1/me/password", json={"current": PASSWORD, "password": "a new long password"})
    assert right.status_code == 204
    assert (await api.get("/api/v1/me")).status_code == 200
    assert (await other.get("/api/v1/me")).status_code == 401
    assert (await sign_in(node, password="a new long password"))[1].status_code == 200
    for each in (api, other):
        await each.aclose()


async def test_no_user_grants_permissions_that_they_lack(node: ServerNode, admin: Api):
    await let_in(admin, "boss", "admin")
    boss, _ = await sign_in(node, "boss")
    body = {"name": "eve@default", "password": PASSWORD, "role": "admin", "permissions": ["installation"]}
    assert (await boss.post("/api/v1/users", json=body)).status_code == 403
    assert (await boss.get("/api/v1/users/eve@default")).status_code == 404
    assert (await boss.patch("/api/v1/users/boss", json={"active": True})).status_code == 403
    await boss.aclose()


@pytest.mark.parametrize("password", ["short", "aaaaaaaaaaaaaaaa", "Grace is my own name", "x" * 300])
async def test_a_weak_password_is_refused(admin: Api, password: str):
    refused = await admin.post("/api/v1/users", json={"name": "grace", "password": password, "role": "viewer"})
    assert (refused.status_code, refused.json()["field"]) == (400, "password")


async def test_a_password_may_contain_a_short_name_by_chance(admin: Api):
    await let_in(admin, "e")


async def test_the_store_and_the_audit_log_contain_no_password(node: ServerNode, admin: Api):
    await let_in(admin)
    api, _ = await sign_in(node)
    await admin.patch("/api/v1/users/ada", json={"password": "another long password"})
    tables = ("users", "sign_ins", "audit_log", "members")
    held = repr([await node.store.read(one(Statement(f"all {t}", f"SELECT * FROM {t}"))) for t in tables])
    assert PASSWORD not in held
    assert "another long password" not in held
    assert str(api.cookies.get("horae")) not in held
    assert "$argon2id$" in held
    await api.aclose()


async def come_back(node: ServerNode, provider: Provider) -> tuple[Api, httpx2.Response]:
    """Begin at Horae, agree at the provider, and return."""
    api = browser(node)
    begun = await api.get("/api/v1/sign-in/oidc")
    assert begun.status_code == 302, begun.text
    url = begun.headers["location"]
    code, state = provider.authorise(url), parse_qs(urlsplit(url).query)["state"][0]
    return api, await api.get("/api/v1/sign-in/oidc/callback", params={"code": code, "state": state})


async def test_users_of_a_provider_are_told_where_their_roles_and_passwords_are(node: ServerNode, provider: Provider):
    api, _ = await come_back(node, provider)
    api.headers["x-csrf-token"] = (await api.get("/api/v1/me")).json()["csrf"]
    told = await api.post("/api/v1/me/password", json={"current": "mine", "password": "a new long password"})
    assert (told.status_code, "identity provider" in told.json()["remedy"]) == (400, True)
    await api.aclose()
    provider.claims["groups"] = []
    assert "oidc_roles" in await refused(node, provider)


@both
async def test_a_sign_in_at_a_provider_maps_groups_to_roles(node: ServerNode, admin: Api, provider: Provider):
    api, back = await come_back(node, provider)
    assert back.headers["location"] == "/"
    assert provider.clients == [["horae", "50% + a:b"]]
    me = (await api.get("/api/v1/me")).json()
    assert (me["name"], me["role"]) == ("ada", "admin")
    assert "installation" not in me["permissions"]
    assert (await admin.get("/api/v1/users/ada")).json()["hasPassword"] is False
    await api.aclose()


async def refused(node: ServerNode, provider: Provider) -> str:
    api, back = await come_back(node, provider)
    assert back.headers["location"].startswith("/#problem=")
    assert (await api.get("/api/v1/me")).status_code == 401
    await api.aclose()
    return str(back.headers["location"])


@pytest.mark.parametrize(
    "claims",
    [
        {"groups": ["others"]}, {"groups": []}, {"groups": ["gone"]}, {"aud": "another"}, {"iss": "https://evil.test"},
        {"exp": 1}, {"nonce": "old"}, {"preferred_username": "a b\nc", "email": ""},
    ],
)  # fmt: skip
async def test_users_without_a_group_and_foreign_tokens_are_rejected(
    node: ServerNode, provider: Provider, claims: dict[str, Any]
):
    provider.claims |= claims
    await refused(node, provider)


@pytest.mark.parametrize(
    "key", [ECKey.generate_key("P-256"), OctKey.import_key("s" * 32)], ids=["stranger", "symmetric"]
)
async def test_a_token_not_signed_by_the_provider_is_refused(node: ServerNode, provider: Provider, key: Any):
    provider.key, provider.algorithm = key, "HS256" if isinstance(key, OctKey) else "ES256"
    await refused(node, provider)


async def test_a_code_is_useless_in_another_browser(node: ServerNode, provider: Provider):
    victim, attacker = browser(node), browser(node)
    url = (await attacker.get("/api/v1/sign-in/oidc")).headers["location"]
    code, state = provider.authorise(url), parse_qs(urlsplit(url).query)["state"][0]
    back = await victim.get("/api/v1/sign-in/oidc/callback", params={"code": code, "state": state})
    assert back.headers["location"].startswith("/#problem=")
    for api in (victim, attacker):
        await api.aclose()


async def test_a_sign_in_flow_is_finished_once(node: ServerNode, provider: Provider):
    api = browser(node)
    url = (await api.get("/api/v1/sign-in/oidc")).headers["location"]
    state = parse_qs(urlsplit(url).query)["state"][0]
    for expected in ("/", "/#problem="):
        asked = {"code": provider.authorise(url), "state": state}
        cookie = {"cookie": f"horae_oidc={state}"}
        back = await browser(node, **cookie).get("/api/v1/sign-in/oidc/callback", params=asked)
        assert back.headers["location"].startswith(expected)
    await api.aclose()


async def test_a_provider_cannot_take_over_a_password_user(node: ServerNode, admin: Api, provider: Provider):
    await let_in(admin)
    assert "password" in await refused(node, provider)


async def test_an_unreachable_provider_is_reported(node: ServerNode, provider: Provider):
    await provider.listener.stop(0.1)
    async with browser(node) as api:
        assert (await api.get("/api/v1/sign-in/oidc")).status_code == 503


async def test_requests_do_not_wait_one_after_the_other_for_a_provider_that_does_not_answer(
    node: ServerNode, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
):
    oidc = node.part(UsersPart).oidc
    fetch = AsyncMock(side_effect=TimeoutError)
    monkeypatch.setattr(oidc._outbound, "fetch", fetch)
    async with browser(node) as api:
        for _ in range(3):
            assert (await api.get("/api/v1/sign-in/oidc")).status_code == 503
        assert fetch.await_count == 1
        clock.advance(11 * SECOND)
        assert (await api.get("/api/v1/sign-in/oidc")).status_code == 503
        assert fetch.await_count == 2


async def test_a_provider_name_belongs_to_its_first_user(node: ServerNode, admin: Api, provider: Provider):
    """At many providers users choose their own names: a second user who takes the name ada is not ada here."""
    first, _ = await come_back(node, provider)
    provider.claims["sub"] = "2"
    assert "another%20user" in await refused(node, provider)
    assert (await first.get("/api/v1/me")).status_code == 200
    await first.aclose()
    assert (await admin.delete("/api/v1/users/ada")).status_code == 204
    second, back = await come_back(node, provider)
    assert back.headers["location"] == "/"
    await second.aclose()


async def test_claims_are_read_in_the_forms_of_providers(node: ServerNode, provider: Provider):
    api = browser(node)
    url = (await api.get("/api/v1/sign-in/oidc")).headers["location"]
    asked = {"state": parse_qs(urlsplit(url).query)["state"][0], "session_state": "s", "scope": "openid"}
    said = {"error": "access_denied", "error_description": "ask your boss"}
    back = await api.get("/api/v1/sign-in/oidc/callback", params={**asked, **said})
    assert "ask%20your%20boss" in back.headers["location"]
    await api.aclose()


async def test_a_link_cannot_show_a_forged_provider_error(node: ServerNode, provider: Provider):
    async with browser(node) as api:
        said = {"error": "x", "error_description": "call 0800-EVIL"}
        back = await api.get("/api/v1/sign-in/oidc/callback", params=said)
    assert "EVIL" not in back.headers["location"]


async def test_malformed_cookies_are_ignored(node: ServerNode, admin: Api):
    """Another page on this domain can set cookies that a strict parser rejects."""
    await let_in(admin)
    api, _ = await sign_in(node)
    own = api.cookies.get("horae")
    odd = browser(node, cookie=f"a@b=1; path; x[y]=2; horae={own}; {{")
    assert (await odd.get("/api/v1/me")).status_code == 200
    back = await browser(node, cookie="a@b=1").get("/api/v1/sign-in/oidc/callback", params={"state": "x"})
    assert back.status_code == 302
    for each in (api, odd):
        await each.aclose()


async def test_a_form_on_another_site_cannot_sign_in(node: ServerNode, admin: Api):
    """Otherwise a victim would work in an attacker's session and give away their data: forms cannot send JSON."""
    await let_in(admin, "eve")
    form = browser(node, **{"content-type": "text/plain"})
    text = f'{{"name": "eve", "password": "{PASSWORD}"}}'
    code = (await admin.post("/api/v1/sign-in/codes")).json()["code"]
    for path, content in (("/password", text), ("", f'{{"code": "{code}"}}')):
        refused = await form.post(f"/api/v1/sign-in{path}", content=content)
        assert (refused.status_code, "set-cookie" in refused.headers) == (403, False)
    await form.aclose()


async def test_provider_users_of_a_deleted_namespace_are_gone(
    node: ServerNode, admin: Api, provider: Provider, clock: VirtualClock
):
    assert (await admin.post("/api/v1/namespaces", json={"name": "nowhere"})).status_code == 201
    provider.claims["groups"] = ["gone"]
    api, _ = await come_back(node, provider)
    assert (await api.get("/api/v1/me")).json()["namespace"] == "nowhere"
    assert (await admin.delete("/api/v1/namespaces/nowhere")).status_code == 204
    clock.advance(int(CACHED * SECOND))
    assert (await api.get("/api/v1/me")).status_code == 401
    await api.aclose()


@both
async def test_user_names_must_differ_in_more_than_case(node: ServerNode, admin: Api, provider: Provider):
    """A reader of the audit log would confuse Ada with ada."""
    await let_in(admin)
    twin = await admin.post("/api/v1/users", json={"name": "Ada", "password": PASSWORD, "role": "viewer"})
    assert twin.status_code == 409
    provider.claims["preferred_username"] = "ADA"
    assert "case" in await refused(node, provider)


async def failures(admin: Api) -> list[tuple[str, str, str]]:
    rows = (await admin.get("/api/v1/audit/log", params={"action": "me.", "limit": 1000})).json()["items"]
    return [(row["action"], row["target"], row["address"]) for row in rows if row["outcome"] == "denied"]


@both
async def test_failed_sign_ins_are_recorded_once_a_minute(
    node: ServerNode, admin: Api, clock: VirtualClock, provider: Provider
):
    await let_in(admin)
    async with browser(node) as api:
        for name in ("ada", "ada", "nobody", "my secret password", "ada"):
            wrong = await api.post("/api/v1/sign-in/password", json={"name": name, "password": "wrong"})
            assert wrong.status_code == 401
        assert (await api.post("/api/v1/sign-in", json={"code": "made up"})).status_code == 401
        await api.get("/api/v1/sign-in/oidc/callback", params={"code": "c", "state": "made up"})
        by = "me.sign-in-with-password"
        told = [(by, "users/ada"), (by, "users/nobody"), (by, ""), ("me.sign-in", ""), ("me.oidc-callback", "")]
        assert sorted(await failures(admin)) == sorted((*one, "10.1.2.3") for one in told)
        clock.advance(61 * SECOND)
        await api.post("/api/v1/sign-in/password", json={"name": "ada", "password": "wrong"})
        assert len(await failures(admin)) == 6
    assert (await admin.get("/api/v1/audit/log/verdict")).json()["broken"] is None


async def test_failed_sign_ins_do_not_fill_the_audit_log(node: ServerNode, admin: Api):
    for n in range(300):
        await node.part(AuditLogPart).audit_log.fail("me.sign-in-with-password", f"user{n}", "10.0.0.1", "wrong")
        await node.part(AuditLogPart).audit_log.fail(
            "me.sign-in-with-password", "ada", f"10.0.{n // 250}.{n % 250}", "wrong"
        )
    assert len(await failures(admin)) <= MOST_FAILED


@both
async def test_unfinished_provider_sign_ins_store_nothing(node: ServerNode, provider: Provider):
    async with browser(node) as api:
        for _ in range(20):
            assert (await api.get("/api/v1/sign-in/oidc")).status_code == 302
    assert await node.store.read(one(Statement("flows", "SELECT state FROM oidc_flows"))) == []
    signed, _ = await come_back(node, provider)
    assert (await signed.get("/api/v1/me")).status_code == 200
    assert len(await node.store.read(one(Statement("flows", "SELECT state FROM oidc_flows")))) == 1
    await signed.aclose()


async def test_a_forged_or_old_state_is_refused_before_the_provider_is_called(
    node: ServerNode, provider: Provider, clock: VirtualClock
):
    async with browser(node) as api:
        url = (await api.get("/api/v1/sign-in/oidc")).headers["location"]
        state = parse_qs(urlsplit(url).query)["state"][0]
        later = f"{int(state.split('.')[0], 16) + 3600:x}.{state.partition('.')[2]}"
        clock.advance(601 * SECOND)
        asked = len(provider.asked)
        for tried in (state, later, "made.up", "x", f"{state}x"):
            cookie = {"cookie": f"horae_oidc={tried}"}
            back = await browser(node, **cookie).get(
                "/api/v1/sign-in/oidc/callback", params={"code": "c", "state": tried}
            )
            assert "not%20begun%20at" in back.headers["location"]
        assert len(provider.asked) == asked


async def test_a_namespace_administrator_sees_only_its_own_users(node: ServerNode, admin: Api):
    await let_in(admin)
    assert (await admin.post("/api/v1/namespaces", json={"name": "shop"})).status_code == 201
    here = {"horae-namespace": "shop"}
    key = (await admin.post("/api/v1/keys", json={"name": "k", "role": "admin"}, headers=here)).json()["key"]
    async with browser(node, authorization=f"Bearer {key}") as boss:
        said = []
        for name in ("ada", "bea"):  # another namespace has an ada
            refused = await boss.post("/api/v1/users", json={"name": name, "password": PASSWORD, "role": "viewer"})
            said.append((refused.status_code, refused.json()["detail"]))
            assert "NAME@shop" in refused.json()["remedy"]
        assert said[0] == said[1]
        assert said[0][0] == 400
        await let_in(boss, "ada@shop")
