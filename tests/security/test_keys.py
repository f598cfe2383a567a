"""Keys: their rights, their end, and their absence from the database."""

from collections.abc import AsyncIterator

import pytest

from horae.engine.server_node import ServerNode
from horae.engine.tenancy.keys import CACHED, LONGEST_OVERLAP
from horae.env import SECOND
from horae.model.base.duration import DAY
from horae.store.contract import Store
from horae.store.driver import one
from horae.store.schema.all_tables import metadata
from horae.store.script import Statement
from tests.security.people import Api, People, done, opened

KEYS, ME = "/api/v1/keys", "/api/v1/me"
HOUR = 3600 * SECOND
both = pytest.mark.parametrize("people", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
async def people(request: pytest.FixtureRequest) -> AsyncIterator[People]:
    is_plain = getattr(request, "param", "sqlite") == "sqlite"
    async with opened("sqlite://" if is_plain else request.getfixturevalue("postgres_url")) as people:
        yield people


def advance(people: People, span: int) -> None:
    people.node.env.clock.advance(span)  # type: ignore[attr-defined]


async def valid(people: People, key: str) -> bool:
    return (await people.bearing(key).get(ME)).status_code == 200


async def code_of(maker: Api) -> str:
    return str((await done(maker.post("/api/v1/sign-in/codes")))["code"])


# Rotation


@both
async def test_a_rotated_key_and_the_new_one_are_both_valid_until_the_overlap_ends(people: People):
    admin = await people.a("admin")
    body = {"name": "ci", "role": "operator", "jobs": ["etl-*"], "queues": ["etl"]}
    old = await done(admin.post(KEYS, json=body))

    new = await done(admin.post(f"{KEYS}/{old['keyId']}/rotate", json={"overlap": "1h"}))

    assert {name: new[name] for name in body} == body
    assert (await valid(people, old["key"]), await valid(people, new["key"])) == (True, True)
    advance(people, HOUR)
    assert (await valid(people, old["key"]), await valid(people, new["key"])) == (False, True)
    listed = {key["keyId"]: key for key in (await done(admin.get(KEYS)))["items"]}
    assert listed[old["keyId"]]["replacedBy"] == new["keyId"]
    assert listed[new["keyId"]]["expiresAt"] is None


async def test_the_successor_of_an_expiring_key_lives_as_long(people: People):
    made = await people.node.tenancy.keys.create(1, "ci", "viewer", people.node.env.now() + 10 * DAY)
    advance(people, 9 * DAY)
    new = await people.node.tenancy.keys.rotate(1, made.stored.id, 5 * DAY)
    assert new.stored.expires_at == people.node.env.now() + 10 * DAY
    advance(people, DAY)
    assert not await valid(people, made.text)  # the overlap does not lengthen it


async def test_a_key_is_rotated_once_and_not_after_its_end(people: People):
    admin = await people.a("admin")
    old = await done(admin.post(KEYS, json={"name": "ci", "role": "viewer"}))
    new = await done(admin.post(f"{KEYS}/{old['keyId']}/rotate", json={}))
    again = await admin.post(f"{KEYS}/{old['keyId']}/rotate", json={})
    assert (again.status_code, "rotated already" in again.json()["detail"]) == (409, True)

    await done(admin.delete(f"{KEYS}/{new['keyId']}"))
    assert (await admin.post(f"{KEYS}/{new['keyId']}/rotate", json={})).status_code == 404
    too_long = await admin.post(f"{KEYS}/{old['keyId']}/rotate", json={"overlap": f"{LONGEST_OVERLAP // DAY + 1}d"})
    assert (too_long.status_code, too_long.json()["field"]) == (400, "overlap")


async def test_a_zero_overlap_ends_the_old_key_at_once(people: People):
    admin = await people.a("admin")
    old = await done(admin.post(KEYS, json={"name": "leaked", "role": "viewer"}))
    assert await valid(people, old["key"])
    await done(admin.post(f"{KEYS}/{old['keyId']}/rotate", json={"overlap": 0}))
    assert not await valid(people, old["key"])


async def test_a_repeated_rotation_creates_one_key_and_shows_it_once(people: People):
    admin = await people.a("admin", **{"idempotency-key": "once"})
    old = await people.node.tenancy.keys.create(1, "ci", "viewer")
    first, second = [await done(admin.post(f"{KEYS}/{old.stored.id}/rotate", json={})) for _ in range(2)]
    assert (first["keyId"], "key" in first, "key" in second) == (second["keyId"], True, False)


# What a key may be given


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"role": "worker", "permissions": ["commands"]}, "permissions"),
        ({"role": "worker", "jobs": ["etl-*"]}, "jobs"),
        ({"role": "admin", "permissions": ["installation"], "jobs": ["etl-*"]}, "permissions"),
        ({"role": "viewer", "permissions": ["everything"]}, "permissions"),
        ({"role": "viewer", "jobs": ["a/b"]}, "jobs"),
        ({"role": "root"}, "role"),
    ],
)
async def test_an_invalid_key_definition_is_refused(people: People, body: dict[str, object], field: str):
    admin = await people.a("admin", "installation")
    answer = await admin.post(KEYS, json={"name": "odd", **body})
    assert (answer.status_code, answer.json()["field"].partition("[")[0]) == (400, field)


async def test_no_key_grants_permissions_that_it_lacks(people: People):
    admin = await people.a("admin")
    refused = await admin.post(KEYS, json={"name": "more", "role": "viewer", "permissions": ["installation"]})
    assert refused.status_code == 403
    given = await done(admin.post(KEYS, json={"name": "ok", "role": "editor", "permissions": ["commands"]}))
    assert given["permissions"] == ["commands"]


async def test_no_key_revokes_or_rotates_a_more_powerful_one(people: People):
    first = await people.node.tenancy.keys.ensure_admin_key()
    assert first is not None
    id, admin = first.split("_")[1], await people.a("admin")
    assert (await admin.delete(f"{KEYS}/{id}")).status_code == 403
    assert (await admin.post(f"{KEYS}/{id}/rotate", json={})).status_code == 403
    assert await valid(people, first)


async def test_a_namespace_administrator_creates_no_key_for_the_installation(people: People):
    root = await people.a("admin", "installation")
    await people.node.store.write(
        one(Statement("team", "INSERT INTO namespaces (id, name, created_at) VALUES (7, 'team', 0)"))
    )
    there = {"horae-namespace": "team"}
    body = {"name": "k", "role": "admin"}
    refused = await root.post(KEYS, json={**body, "permissions": ["installation"]}, headers=there)
    assert (refused.status_code, refused.json()["field"]) == (400, "permissions")

    made = await done(root.post(KEYS, json=body, headers=there))
    assert made["namespace"] == "team"
    assert (await done(people.bearing(made["key"]).get(ME)))["namespace"] == "team"


# Where a key is used


async def test_only_installation_keys_choose_a_namespace(people: People):
    await people.node.store.write(
        one(Statement("team", "INSERT INTO namespaces (id, name, created_at) VALUES (7, 'team', 0)"))
    )
    root, admin = await people.a("admin", "installation"), await people.a("admin")
    there = {"horae-namespace": "team"}
    job = {"name": "theirs", "http": "https://a.example"}

    await done(root.post("/api/v1/jobs", json=job, headers=there))

    assert (await root.get("/api/v1/jobs/theirs")).status_code == 404
    assert (await root.get("/api/v1/jobs/theirs", headers=there)).status_code == 200
    for name in ("team", "nowhere"):
        answer = await admin.get("/api/v1/jobs", headers={"horae-namespace": name})
        assert (answer.status_code, answer.json()["detail"]) == (404, f'No namespace "{name}" for this credential.')
    assert (await admin.get("/api/v1/jobs", headers={"horae-namespace": "default"})).status_code == 200
    assert (await admin.get("/api/v1/jobs?namespace=team")).status_code == 400  # never by a query


async def test_a_sign_in_link_is_bound_to_its_namespace(people: People):
    await people.node.store.write(
        one(Statement("team", "INSERT INTO namespaces (id, name, created_at) VALUES (7, 'team', 0)"))
    )
    root = await people.a("admin", "installation")
    code = (await done(root.post("/api/v1/sign-in/codes", headers={"horae-namespace": "team"})))["code"]
    browser = people.bearing()
    me = await done(browser.post("/api/v1/sign-in", json={"code": code}))
    assert (me["namespace"], "installation" in me["permissions"]) == ("team", False)
    assert (await browser.get("/api/v1/jobs", headers={"horae-namespace": "default"})).status_code == 404


# The end of a key


@both
async def test_a_revoked_key_ends_within_five_seconds_on_every_server(people: People):
    """Another server of the same store accepts it for at most that long."""
    env, store = people.node.env, people.node.store
    other = People(ServerNode(env, Store(store.driver, env)))
    made = await people.node.tenancy.keys.create(1, "ci", "admin")
    assert await valid(people, made.text)
    assert await valid(other, made.text)

    await people.node.tenancy.keys.revoke(1, made.stored.id)

    assert not await valid(people, made.text)
    assert CACHED <= 5
    advance(people, int(CACHED * SECOND))
    assert not await valid(other, made.text)
    for client in other.clients:
        await client.aclose()


async def test_browsers_end_with_the_key_whose_link_signed_them_in(people: People):
    made = await people.node.tenancy.keys.create(1, "ci", "operator", people.node.env.now() + 2 * DAY)
    bearer = people.bearing(made.text)
    codes = [await code_of(bearer) for _ in range(2)]
    browser = people.bearing()
    signed = await browser.post("/api/v1/sign-in", json={"code": codes[0]})
    assert f"Max-Age={2 * 86400};" in signed.headers["set-cookie"]  # not longer than the key

    browser.headers["x-csrf-token"] = signed.json()["csrf"]
    further = people.bearing()
    await done(further.post("/api/v1/sign-in", json={"code": await code_of(browser)}))
    assert (await further.get(ME)).status_code == 200

    await people.node.tenancy.keys.revoke(1, made.stored.id)

    assert (await browser.get(ME)).status_code == 401
    assert (await further.get(ME)).status_code == 401  # whatever the chain of sign-in links
    assert (await people.bearing().post("/api/v1/sign-in", json={"code": codes[1]})).status_code == 401


async def test_a_list_shows_when_a_key_was_used_last(people: People):
    admin = await people.a("admin")
    made = await done(admin.post(KEYS, json={"name": "ci", "role": "viewer"}))
    unused = {key["keyId"]: key for key in (await done(admin.get(KEYS)))["items"]}[made["keyId"]]
    await valid(people, made["key"])
    used = {key["keyId"]: key for key in (await done(admin.get(KEYS)))["items"]}[made["keyId"]]
    assert (unused["lastUsedAt"], used["lastUsedAt"] is not None) == (None, True)


# At rest


@both
async def test_a_database_dump_contains_no_key_code_or_cookie(people: People):
    admin = await people.a("admin", "installation", **{"idempotency-key": "kept"})
    made = await done(admin.post(KEYS, json={"name": "ci", "role": "worker"}))
    rotated = await done(admin.post(f"{KEYS}/{made['keyId']}/rotate", json={}))
    code = (await done(admin.post("/api/v1/sign-in/codes")))["code"]
    browser = people.bearing()
    csrf = (await done(browser.post("/api/v1/sign-in", json={"code": code})))["csrf"]
    unused = (await done(admin.post("/api/v1/sign-in/codes")))["code"]
    preset = "hk_preset0_" + "p" * 40
    await people.node.tenancy.keys.ensure_admin_key(preset)
    shown = str(admin.headers["authorization"]).removeprefix("Bearer ")

    dump = ""
    for table in metadata.tables:
        rows = await people.node.store.read(one(Statement(f"dump {table}", f"SELECT * FROM {table}")))
        dump += repr(rows)

    assert made["keyId"] in dump
    assert csrf in dump  # the token is useless without the cookie
    for secret in (made["key"], rotated["key"], preset, shown, code, unused, browser.cookies["horae"]):
        parts = (secret, secret.split("_", 2)[-1], secret[-24:], secret.encode().hex())
        assert [part for part in parts if len(part) >= 16 and part in dump] == []  # a short text may belong to anything


async def test_two_installations_have_different_first_keys():
    found = set()
    for _ in range(2):
        async with opened() as people:
            found.add(await people.node.tenancy.keys.ensure_admin_key())
    assert len(found) == 2


async def test_a_first_start_has_no_open_access(people: People):
    """No default password, and no route without a credential except the public ones: see also test_matrix."""
    anonymous = people.bearing()
    for path in ("/api/v1/jobs", "/metrics", "/openapi.json", "/api/v1/keys", "/api/v1/stream"):
        assert (await anonymous.get(path)).status_code == 401
    for guess in ("admin", "horae", "", "hk_0_0", "default"):
        assert (await people.bearing(guess or " ").get(ME)).status_code == 401
