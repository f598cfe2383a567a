"""Keys: created, checked, revoked, never stored; browsers sign in with a code that works once."""

import asyncio

import pytest

from horae.engine.server_node import ServerNode
from horae.engine.tenancy.keys import CACHED, CODE_LIFE, NOTED_EVERY, ApiKeys
from horae.env import SECOND, VirtualClock
from horae.errors import BadInput, Conflict, StoreUnavailable, Unauthorized
from horae.store.driver import one
from horae.store.script import Statement
from tests.server.conftest import Api, Connect

YEAR = 366 * 86_400 * SECOND


async def everything(node: ServerNode) -> str:
    """Return everything that the store has about credentials."""
    tables = ("keys", "sign_in_codes", "cookies", "idempotency")
    rows = [await node.store.read(one(Statement(f"all {t}", f"SELECT * FROM {t}"))) for t in tables]
    return repr(rows)


async def statements(node: ServerNode, name: str) -> int:
    return node.store.driver.statements[name]


async def test_the_first_start_creates_a_key_and_later_ones_do_not(node: ServerNode):
    text = await node.tenancy.keys.ensure_admin_key()

    assert text is not None
    assert text.startswith("hk_")
    assert await node.tenancy.keys.ensure_admin_key() is None
    assert (await node.tenancy.keys.check(text)).role == "admin"


async def test_a_key_found_beside_a_new_store_becomes_its_first_one(node: ServerNode):
    found = "hk_abcd_" + "s" * 40
    assert await node.tenancy.keys.ensure_admin_key(found=found) == found
    assert (await node.tenancy.keys.check(found)).role == "admin"


async def test_a_revoked_key_does_not_come_back_by_its_file(node: ServerNode):
    found = await node.tenancy.keys.ensure_admin_key()
    [known] = await node.tenancy.keys.list(1)
    await node.tenancy.keys.revoke(1, known.id, force=True)
    again = await node.tenancy.keys.ensure_admin_key(found=found)
    assert again not in (None, found)


async def test_a_preset_key_is_valid_and_nothing_is_shown(node: ServerNode):
    preset = "hk_ci00_" + "s" * 40
    assert await node.tenancy.keys.ensure_admin_key(preset) is None
    assert (await node.tenancy.keys.check(preset)).role == "admin"
    assert await node.tenancy.keys.ensure_admin_key() is None


async def test_a_preset_key_may_be_any_long_text_and_may_change(node: ServerNode, env):
    first, second = "0123456789abcdef" * 4, "fedcba9876543210" * 4
    await node.tenancy.keys.ensure_admin_key(first)
    await node.tenancy.keys.ensure_admin_key(second)
    await node.tenancy.keys.ensure_admin_key(second)
    assert await node.tenancy.keys.check(first)
    assert await node.tenancy.keys.check(second)
    assert len(await node.tenancy.keys.list(1)) == 2


async def test_a_short_preset_key_is_refused(node: ServerNode):
    with pytest.raises(BadInput):
        await node.tenancy.keys.ensure_admin_key("admin")


async def test_the_store_holds_no_secret(node: ServerNode, api: Api):
    made = (
        await api.post("/api/v1/keys", json={"name": "ci", "role": "worker"}, headers={"idempotency-key": "k"})
    ).json()
    code = (await node.tenancy.keys.new_sign_in_code()).text
    signed = await node.tenancy.keys.sign_in(code)

    stored = await everything(node)

    for secret in (made["key"], made["key"].split("_", 2)[2], code, signed.cookie):
        assert secret not in stored


async def test_a_revoked_key_stops_at_once_here_and_soon_elsewhere(
    node: ServerNode, api: Api, connect: Connect, clock: VirtualClock
):
    made = (await api.post("/api/v1/keys", json={"name": "ci", "role": "admin"})).json()
    bearer = connect(authorization=f"Bearer {made['key']}")
    elsewhere = ApiKeys(node.env, node.store)
    assert (await bearer.get("/api/v1/me")).json()["keyId"] == made["keyId"]
    assert await elsewhere.check(made["key"])

    assert (await api.delete(f"/api/v1/keys/{made['keyId']}")).status_code == 204

    assert (await bearer.get("/api/v1/me")).status_code == 401
    clock.advance(int(CACHED * SECOND))
    assert await elsewhere.check(made["key"]) is None
    assert (await api.delete(f"/api/v1/keys/{made['keyId']}")).status_code == 404


async def test_an_expired_key_stops_at_its_instant(node: ServerNode, clock: VirtualClock):
    new = await node.tenancy.keys.create(1, "short", "worker", node.env.now() + 2 * SECOND)
    assert await node.tenancy.keys.check(new.text)
    clock.advance(2 * SECOND)
    assert await node.tenancy.keys.check(new.text) is None


async def test_a_key_that_has_expired_already_is_refused(api: Api):
    body = {"name": "old", "role": "worker", "expiresAt": "2001-01-01T00:00:00Z"}
    answer = await api.post("/api/v1/keys", json=body)
    assert (answer.status_code, answer.json()["field"]) == (400, "expiresAt")


async def test_a_checked_key_costs_no_statement_for_a_while(node: ServerNode, clock: VirtualClock):
    new = await node.tenancy.keys.create(1, "busy", "worker")
    for _ in range(10):
        assert await node.tenancy.keys.check(new.text)
    assert await statements(node, "key") == 1
    clock.advance(int(CACHED * SECOND))
    assert await node.tenancy.keys.check(new.text)
    assert await statements(node, "key") == 2


async def test_the_last_use_is_written_at_most_once_a_minute(node: ServerNode, clock: VirtualClock):
    new = await node.tenancy.keys.create(1, "busy", "worker")
    for _ in range(24):
        await node.tenancy.keys.check(new.text)
        clock.advance(int(CACHED * SECOND))
    assert await statements(node, "key_used") == 24 * CACHED * SECOND / NOTED_EVERY
    (stored,) = await node.tenancy.keys.list(1)
    assert stored.last_used_at is not None


async def test_a_store_that_cannot_write_still_admits_known_keys(node: ServerNode, monkeypatch):
    new = await node.tenancy.keys.create(1, "reader", "worker")

    async def full(*_: object, **__: object) -> None:
        raise StoreUnavailable("The disk is full.")

    monkeypatch.setattr(node.store, "write", full)
    assert await node.tenancy.keys.check(new.text)


async def test_keys_are_listed_in_pages_without_secrets(api: Api, node: ServerNode):
    for n in range(3):
        await node.tenancy.keys.create(1, f"k{n}", "worker")
    await node.tenancy.keys.create(2, "another tenant's", "admin")

    first = (await api.get("/api/v1/keys?limit=3")).json()
    rest = (await api.get("/api/v1/keys", params={"limit": 3, "cursor": first["nextCursor"]})).json()

    items = first["items"] + rest["items"]
    assert rest["nextCursor"] is None
    assert sorted(item["name"] for item in items) == ["a test's admin", "k0", "k1", "k2"]
    assert all("key" not in item for item in items)


async def test_a_key_of_another_namespace_is_not_found(api: Api, node: ServerNode):
    other = await node.tenancy.keys.create(2, "another tenant's", "admin")
    assert (await api.delete(f"/api/v1/keys/{other.stored.id}")).status_code == 404
    assert await node.tenancy.keys.check(other.text)


async def test_a_repeated_creation_creates_one_key_and_shows_its_text_once(api: Api, node: ServerNode):
    body, again = {"name": "ci", "role": "worker"}, {"idempotency-key": "one"}
    first = await api.post("/api/v1/keys", json=body, headers=again)
    second = await api.post("/api/v1/keys", json=body, headers=again)

    assert (first.status_code, second.status_code) == (201, 201)
    assert first.headers["location"] == second.headers["location"]
    assert first.json()["keyId"] == second.json()["keyId"]
    assert "key" in first.json()
    assert "key" not in second.json()


# Browsers


async def signed_in(connect: Connect, node: ServerNode) -> tuple[Api, str]:
    browser = connect()
    answer = await browser.post("/api/v1/sign-in", json={"code": (await node.tenancy.keys.new_sign_in_code()).text})
    assert answer.status_code == 200
    return browser, answer.json()["csrf"]


async def test_a_code_signs_one_browser_in_once(connect: Connect, node: ServerNode):
    code = (await node.tenancy.keys.new_sign_in_code()).text
    browser = connect()

    answer = await browser.post("/api/v1/sign-in", json={"code": code})

    cookie = answer.headers["set-cookie"]
    assert cookie.split("; ")[1:] == ["Path=/", f"Max-Age={7 * 86400}", "HttpOnly", "SameSite=Lax"]
    assert (await browser.get("/api/v1/me")).json()["role"] == "admin"
    assert (await connect().post("/api/v1/sign-in", json={"code": code})).status_code == 401


async def test_an_administrator_creates_codes_and_the_refusal_of_a_used_one_has_a_remedy(
    api: Api, worker: Api, connect: Connect
):
    made = await api.post("/api/v1/sign-in/codes")
    code = made.json()["code"]
    assert made.status_code == 201
    assert (await connect().post("/api/v1/sign-in", json={"code": code})).json()["role"] == "admin"

    used = (await connect().post("/api/v1/sign-in", json={"code": code})).json()
    assert "`horae sign-in`" in used["remedy"]
    refused = await worker.post("/api/v1/sign-in/codes")
    assert refused.status_code == 403
    assert "horae keys create NAME --role viewer" in refused.json()["remedy"]
    assert (await api.post("/api/v1/sign-in/codes")).json()["code"] != code


async def test_the_text_of_a_code_is_not_stored(api: Api, node: ServerNode):
    made = await api.post("/api/v1/sign-in/codes", headers={"idempotency-key": "k"})
    assert made.json()["code"] not in await everything(node)


async def test_over_https_the_cookie_is_secure(app, node: ServerNode):
    import httpx2

    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="https://horae.test") as browser:
        answer = await browser.post("/api/v1/sign-in", json={"code": (await node.tenancy.keys.new_sign_in_code()).text})
    assert answer.headers["set-cookie"].endswith("; Secure")


async def test_a_code_ends_by_itself(node: ServerNode, clock: VirtualClock):
    code = (await node.tenancy.keys.new_sign_in_code()).text
    clock.advance(CODE_LIFE)
    with pytest.raises(Unauthorized):
        await node.tenancy.keys.sign_in(code)


async def test_a_browsers_writes_need_its_token(connect: Connect, node: ServerNode):
    browser, csrf = await signed_in(connect, node)
    body = {"name": "made by a page", "role": "worker"}

    assert (await browser.get("/api/v1/keys")).status_code == 200
    assert (await browser.post("/api/v1/keys", json=body)).status_code == 403
    assert (await browser.post("/api/v1/keys", json=body, headers={"x-csrf-token": "guess"})).status_code == 403
    assert (await browser.post("/api/v1/keys", json=body, headers={"x-csrf-token": csrf})).status_code == 201


async def test_signing_out_ends_the_cookie(connect: Connect, node: ServerNode):
    browser, csrf = await signed_in(connect, node)
    cookie = dict(browser.cookies)["horae"]

    answer = await browser.post("/api/v1/sign-out", headers={"x-csrf-token": csrf})

    assert answer.status_code == 204
    assert (await connect(cookie=f"horae={cookie}").get("/api/v1/me")).status_code == 401


async def test_a_cookie_is_not_a_key_and_a_key_not_a_cookie(connect: Connect, node: ServerNode):
    browser, _ = await signed_in(connect, node)
    cookie = dict(browser.cookies)["horae"]
    key = (await node.tenancy.keys.create(1, "k", "admin")).text
    assert (await browser.get("/api/v1/me")).status_code == 200

    assert (await connect(authorization=f"Bearer {cookie}").get("/api/v1/me")).status_code == 401
    assert (await connect(authorization=f"Bearer {key}").get("/api/v1/me")).status_code == 200
    assert (await connect(cookie=f"horae={key}").get("/api/v1/me")).status_code == 401


async def test_a_sign_in_is_listed_and_can_be_revoked(connect: Connect, node: ServerNode, api: Api):
    browser, _ = await signed_in(connect, node)
    me = (await browser.get("/api/v1/me")).json()
    await api.delete(f"/api/v1/keys/{me['keyId']}")
    assert (await browser.get("/api/v1/me")).status_code == 401


async def test_the_last_key_of_an_administrator_is_revoked_only_by_force(api: Api, node: ServerNode):
    me = api.headers["authorization"].split("_")[1]

    refused = await api.delete(f"/api/v1/keys/{me}")
    assert (refused.status_code, "--role admin" in refused.json()["remedy"]) == (409, True)
    assert (await api.get("/api/v1/me")).status_code == 200
    second = await node.tenancy.keys.create(1, "second", "admin", permissions=("installation",))
    assert (await api.delete(f"/api/v1/keys/{second.stored.id}")).status_code == 204
    assert (await api.delete(f"/api/v1/keys/{me}?force=true")).status_code == 204


async def test_one_administrator_stays_when_two_revoke_each_other(node: ServerNode, monkeypatch):
    made = [
        (await node.tenancy.keys.create(1, name, "admin", permissions=("installation",))).stored.id for name in "ab"
    ]
    for known in await node.tenancy.keys.list(1):
        if known.id not in made:
            await node.tenancy.keys.revoke(1, known.id)
    write, both = node.store.write, asyncio.Barrier(2)

    async def together(*given):
        await both.wait()
        return await write(*given)

    monkeypatch.setattr(node.store, "write", together)
    done = await asyncio.gather(*(node.tenancy.keys.revoke(1, key) for key in made), return_exceptions=True)

    assert sorted(type(each) for each in done if each is not None) == [Conflict]
    assert [known.id for known in await node.tenancy.keys.list(1) if known.revoked_at is None]


async def test_a_preset_key_that_had_other_rights_becomes_an_administrators(node: ServerNode):
    made = await node.tenancy.keys.create(1, "ci", "viewer")
    assert await node.tenancy.keys.ensure_admin_key(made.text) is None
    node.tenancy.keys.forget()

    principal = await node.tenancy.keys.check(made.text)
    assert (principal.role, principal.may("installation")) == ("admin", True)


@pytest.mark.parametrize("name", ["a\x1b[2J", "a\nb", "a\u202eb", "\x9bA"])
async def test_names_of_keys_have_no_control_characters(name: str, api: Api):
    answer = await api.post("/api/v1/keys", json={"name": name, "role": "viewer"})
    assert (answer.status_code, answer.json()["field"]) == (400, "name")
