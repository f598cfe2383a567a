"""The seams between parts of the trust model: each test is a hole that was found and closed."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx2
import pytest
from argon2 import PasswordHasher

from horae.engine.tenancy.keys import SIGNED_IN_FOR
from horae.env import SECOND
from horae.features.users.engine.passwords import Passwords
from horae.features.users.engine.sign_ins import FREE_OF_ADDRESS, FREE_OF_PLACE
from horae.store.executions.reads.housekeeping import forget_expired
from tests.security.people import Api, People, done, opened

USERS, ME = "/api/v1/users", "/api/v1/me"
PASSWORD = "correct horse battery"
Where = Callable[[int], tuple[str, str]]  # an address, and the header that a proxy sends about it
both = pytest.mark.parametrize("people", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture(autouse=True)
def fast_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Passwords, "_hasher", PasswordHasher(1, 8, 1))


@pytest.fixture
async def people(request: pytest.FixtureRequest) -> AsyncIterator[People]:
    is_plain = getattr(request, "param", "sqlite") == "sqlite"
    async with opened("sqlite://" if is_plain else request.getfixturevalue("postgres_url")) as people:
        yield people


def advance(people: People, span: int) -> None:
    people.node.env.clock.advance(span)  # type: ignore[attr-defined]


async def signed_in(people: People, name: str, **headers: str) -> Api:
    api = people.bearing(**headers)
    me = await done(api.post("/api/v1/sign-in/password", json={"name": name, "password": PASSWORD}))
    api.headers["x-csrf-token"] = me["csrf"]
    return api


async def let_in(by: Api, name: str, role: str, *permissions: str) -> None:
    body = {"name": name, "password": PASSWORD, "role": role, "permissions": list(permissions)}
    await done(by.post(USERS, json=body))


# Users, as keys


@both
async def test_no_administrator_revokes_permissions_that_they_lack(people: People):
    """As with keys: an administrator of the first namespace cannot demote those of the installation."""
    root, boss = await people.a("admin", "installation"), await people.a("admin")
    await let_in(root, "chief", "admin", "installation")

    demoted = await boss.put(f"{USERS}/chief/member", json={"role": "viewer"})
    expelled = await boss.delete(f"{USERS}/chief/member")

    assert (demoted.status_code, expelled.status_code) == (403, 403)
    assert "installation" in (await done(root.get(f"{USERS}/chief")))["memberships"][0]["permissions"]
    await done(root.put(f"{USERS}/chief/member", json={"role": "viewer"}))


async def test_a_namespace_administrator_cannot_add_foreign_users(people: People):
    """Otherwise requests of these users that choose no namespace would go there, with all their data."""
    root = await people.a("admin", "installation")
    for name in ("attackers", "workshop"):
        await done(root.post("/api/v1/namespaces", json={"name": name}))
    workshop = people.bearing(root.headers["authorization"][7:], **{"horae-namespace": "workshop"})
    attackers = people.bearing(root.headers["authorization"][7:], **{"horae-namespace": "attackers"})
    await let_in(workshop, "bob", "admin")
    key = (await done(attackers.post("/api/v1/keys", json={"name": "eve", "role": "admin"})))["key"]

    drawn = await people.bearing(key).put(f"{USERS}/bob/member", json={"role": "viewer"})

    assert drawn.status_code == 404  # nor does it learn that bob exists
    assert (await done((await signed_in(people, "bob")).get(ME)))["namespace"] == "workshop"
    await done(attackers.put(f"{USERS}/bob/member", json={"role": "viewer"}))


# Sessions and tokens that a credential created end with it


@both
async def test_browsers_end_with_the_overlap_of_a_rotated_key(people: People):
    """A key is rotated when it may have leaked: the thief may have signed a browser in with it."""
    admin = await people.a("admin")
    old = await done(admin.post("/api/v1/keys", json={"name": "leaked", "role": "admin"}))
    thief = people.bearing()
    code = (await done(people.bearing(old["key"]).post("/api/v1/sign-in/codes")))["code"]
    await done(thief.post("/api/v1/sign-in", json={"code": code}))

    await done(admin.post(f"/api/v1/keys/{old['keyId']}/rotate", json={"overlap": "1m"}))

    assert (await thief.get(ME)).status_code == 200
    advance(people, 60 * SECOND)
    assert (await thief.get(ME)).status_code == 401


async def test_tokens_end_with_the_key_or_the_user_that_made_them(people: People):
    """No list shows tokens, so a stolen one would not be missed."""
    root, redeem = await people.a("admin", "installation"), "/api/v1/enrolments/redeem"
    left = await done(root.post("/api/v1/keys", json={"name": "left", "role": "admin"}))
    await let_in(root, "eve", "admin")
    makers = (people.bearing(left["key"]), await signed_in(people, "eve"), root)
    tokens = [(await done(maker.post("/api/v1/enrolments", json={})))["token"] for maker in makers]

    await done(root.delete(f"/api/v1/keys/{left['keyId']}"))
    await done(root.patch(f"{USERS}/eve", json={"active": False}))

    tried = [(await people.bearing().post(redeem, json={"token": token})).status_code for token in tokens]
    assert tried == [401, 401, 201]


# Guessing


def far(people: People, address: str, **headers: str) -> Api:
    """Return a client from an address."""
    transport = httpx2.ASGITransport(app=people.app, client=(address, 5))
    client = httpx2.AsyncClient(transport=transport, base_url="http://horae.test", headers=headers)
    people.clients.append(client)
    return client


def guess(api: Api, name: str = "ada", password: str = "wrong") -> Awaitable[httpx2.Response]:
    return api.post("/api/v1/sign-in/password", json={"name": name, "password": password})


async def test_concurrent_guesses_are_counted_one_by_one(people: People):
    await let_in(await people.a("admin", "installation"), "ada", "viewer")
    answers = await asyncio.gather(*(guess(far(people, f"10.0.0.{n}")) for n in range(30)))
    assert Counter(answer.status_code for answer in answers) == {401: FREE_OF_PLACE, 429: 30 - FREE_OF_PLACE}


async def test_a_stolen_browser_session_cannot_guess_the_password(people: People):
    await let_in(await people.a("admin", "installation"), "ada", "viewer")
    stolen = await signed_in(people, "ada")
    body = {"current": "wrong", "password": "a new long password"}
    answers = [(await stolen.post("/api/v1/me/password", json=body)).status_code for _ in range(FREE_OF_PLACE + 1)]
    assert answers == [403] * FREE_OF_PLACE + [429]


@pytest.mark.parametrize(
    "client", [lambda n: (f"2001:db8::{n:x}", ""), lambda n: ("127.0.0.1", f"nonsense-{n}")], ids=["network", "header"]
)
async def test_another_notation_of_an_address_does_not_reset_the_count(people: People, client: Where):
    """The network of one household has 2^64 addresses, and a header can hold anything."""
    answers = []
    for n in range(FREE_OF_ADDRESS + 1):
        address, said = client(n)
        answers.append((await guess(far(people, address, **{"x-forwarded-for": said}), f"user{n}")).status_code)
    assert answers == [401] * FREE_OF_ADDRESS + [429]


async def test_a_right_password_is_not_counted_against_its_address(people: People):
    await let_in(await people.a("admin", "installation"), "ada", "viewer")
    api = far(people, "10.0.0.1")
    assert {(await guess(api, password=PASSWORD)).status_code for _ in range(FREE_OF_ADDRESS + 5)} == {200}


# Ended sessions are deleted


@both
async def test_signed_out_browsers_leave_no_rows(people: People):
    """Otherwise any user who may sign in fills the store, row by row."""
    reader = await people.a("viewer")
    for _ in range(3):
        browser, code = people.bearing(), (await done(reader.post("/api/v1/sign-in/codes")))["code"]
        me = await done(browser.post("/api/v1/sign-in", json={"code": code}))
    await done(browser.post("/api/v1/sign-out", headers={"x-csrf-token": me["csrf"]}))
    assert (await browser.get(ME)).status_code == 401

    for left, later in ((3, 0), (1, SIGNED_IN_FOR)):  # one has signed out, two do not return
        advance(people, later)
        now = people.node.env.now()
        await people.node.store.write(lambda: forget_expired(now, now))  # noqa: B023
        assert len(await people.node.tenancy.keys.list(1)) == left
