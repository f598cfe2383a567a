"""Bad input: each kind is a problem document with the mistake, its place and a remedy; none is a 500."""

import pytest

from horae.engine.server_node import ServerNode
from horae.errors import StoreUnavailable
from horae.server.app import Application
from horae.server.reading.bodies import LARGE_LIMIT, LIMIT, MOST_DISCARDED
from tests.server.conftest import Api

KEYS = "/api/v1/keys"


@pytest.mark.parametrize(
    ("body", "field", "says"),
    [
        (b"{", None, "not valid JSON"),
        (b'{"name": "a", "role": "worker"} x', None, "not valid JSON"),
        (b'{"name": "\xff", "role": "worker"}', None, "UTF-8 (byte 10)"),
        (b'{"name": "a\\u0000b", "role": "worker"}', None, "NUL"),
        (b'{"name": "\\ud800", "role": "worker"}', None, "half of a surrogate pair (byte 10)"),
        (b'{"name": "\\ud83d\\ude00", "role": "worker"', None, "not valid JSON"),
        (b"[]", "body", "expected `object`"),
        (b"null", "body", "expected `object`"),
        (b"", "name", "missing"),
        (b'{"role": "worker"}', "name", "missing"),
        (b'{"name": 7, "role": "worker"}', "name", "expected `str`"),
        (b'{"name": "", "role": "worker"}', "name", "length"),
        (b'{"name": "a", "role": "emperor"}', "role", "invalid"),
        (b'{"name": "a", "role": "worker", "colour": "red"}', "colour", "not a field"),
        (b'{"name": "a", "role": "worker", "expiresAt": "tomorrow"}', "expiresAt", "RFC 3339"),
    ],
)
async def test_a_bad_body_is_400_with_its_field(body: bytes, field: str | None, says: str, api: Api, node: ServerNode):
    answer = await api.post(KEYS, content=body)

    problem = answer.json()
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["type"] == "urn:horae:bad-input"
    assert (problem["instance"], problem["status"]) == (KEYS, 400)
    assert problem["title"]
    assert problem["remedy"]
    assert says in problem["detail"].replace("Expected", "expected")
    assert problem.get("field") == field
    assert len(await node.tenancy.keys.list(1)) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"name": "a", "command": "x", "timeout": 1e999}', "timeout"),
        (b'{"name": "a", "command": "x", "retry": {"delays": [1, 1e999]}}', "retry.delays[1]"),
        (b'{"name": "a", "http": {"url": "http://x", "body": -1e999}}', "http.body"),
    ],
)
async def test_a_number_out_of_range_is_named_by_its_field(body: bytes, field: str, api: Api):
    answer = await api.post("/api/v1/jobs", content=body)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert answer.json()["detail"].startswith(f"{field}: ")


@pytest.mark.parametrize("body", [b'{"params": ' + b"[" * 100_000, b'{"params": ' + b'{"a":' * 100_000])
async def test_deep_nesting_is_400(body: bytes, api: Api):
    answer = await api.post("/api/v1/jobs", content=body)
    assert answer.status_code == 400
    assert "nested" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=many", "limit"),
        ("limit=1&limit=2", "limit"),
        ("colour=red", "colour"),
        ("cursor=%00", "cursor"),
        ("&".join(f"a{n}=1" for n in range(200)), "query"),
    ],
)
async def test_a_bad_query_is_400_with_its_field(query: str, field: str, api: Api):
    answer = await api.get(f"{KEYS}?{query}")
    assert (answer.status_code, answer.json()["field"]) == (400, field)


@pytest.mark.parametrize(
    ("method", "path", "body", "says"),
    [
        ("POST", KEYS, {"name": "a", "role": "emperor"}, "one of: admin, editor, operator, viewer, worker"),
        ("GET", "/api/v1/jobs?state=gone", None, "one of: active, deleted, paused"),
        ("GET", "/api/v1/stream?topics=colours", None, "one of: alerts, circuits"),
        ("GET", f"{KEYS}?limit=0", None, "1 to 1000"),
        ("POST", "/api/v1/jobs/x/trigger", {"priority": 10}, "0 (least urgent) to 9 (most urgent)"),
        ("POST", "/api/v1/jobs/x/rollback", {"version": 0}, "Use a value from 1 to"),
        ("POST", "/api/v1/dlq/retry", {"filter": {"limit": 0}}, "Use a value from 1 to 1000."),
        ("POST", "/api/v1/jobs/x/trigger", {"tags": {"a": 1}}, 'For example: {"team": "data"}.'),
    ],
)
async def test_the_remedy_names_the_accepted_values_of_a_field(
    method: str, path: str, body: object, says: str, api: Api
):
    answer = await api.request(method, path, json=body)
    assert answer.status_code == 400
    assert says in answer.json()["remedy"]


async def test_a_body_over_the_limit_is_413(api: Api):
    answer = await api.post(KEYS, content=b" " * (LIMIT + 1))
    assert (answer.status_code, answer.json()["type"]) == (413, "urn:horae:too-large")
    assert answer.headers["connection"] == "close"


async def test_a_body_that_grows_over_the_limit_is_refused_with_the_limit(api: Api):
    async def parts():
        for _ in range(3):
            yield b" " * (LIMIT // 2)

    answer = await api.post(KEYS, content=parts())
    assert answer.status_code == 413
    assert f"at most {LIMIT} bytes" in answer.json()["remedy"]


async def test_bulk_submissions_and_exchanges_accept_larger_bodies(api: Api):
    for path in ("/api/v1/executions", "/api/v1/sessions/0198c5a0-0000-7000-8000-000000000000/exchange"):
        assert (await api.post(path, content=b" " * LARGE_LIMIT)).status_code != 413
        assert (await api.post(path, content=b" " * (LARGE_LIMIT + 1))).status_code == 413


async def asgi(app: Application, path: str, key: str, receive) -> tuple[int, int]:
    """Return the status of a POST whose body is read from `receive`, and the number of messages read."""
    status, read = 0, 0

    async def counted():
        nonlocal read
        read += 1
        return await receive(read)

    async def send(message):
        nonlocal status
        status = message.get("status", status)

    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(b"authorization", f"Bearer {key}".encode())], "scheme": "http", "http_version": "1.1",
    }  # fmt: skip
    await app(scope, counted, send)
    return status, read


async def test_a_refused_body_is_read_up_to_a_limit_so_that_its_sender_reads_the_answer(
    app: Application, node: ServerNode
):
    key = (await node.tenancy.keys.create(1, "k", "admin")).text

    async def endless(_: int):
        return {"type": "http.request", "body": b" " * 65536, "more_body": True}

    async def ends(n: int):
        return {"type": "http.request", "body": b" " * 65536, "more_body": n < 100}

    assert await asgi(app, KEYS, key, ends) == (413, 100)
    assert await asgi(app, KEYS, key, endless) == (413, MOST_DISCARDED // 65536 + 1)


async def test_without_a_credential_no_body_is_read(app: Application):
    async def never(_: int):
        raise AssertionError("read")

    assert await asgi(app, KEYS, "nobody", never) == (401, 0)


async def test_a_client_that_leaves_in_the_middle_changes_nothing(app: Application, node: ServerNode):
    key = (await node.tenancy.keys.create(1, "k", "admin")).text

    async def leaves(n: int):
        if n == 1:
            return {"type": "http.request", "body": b'{"name": "x", "role": "worker"}', "more_body": True}
        return {"type": "http.disconnect"}

    await asgi(app, KEYS, key, leaves)
    assert len(await node.tenancy.keys.list(1)) == 1


async def test_a_store_that_is_away_is_503_with_retry_after(api: Api, node: ServerNode, monkeypatch):
    async def away(*_: object, **__: object):
        raise StoreUnavailable("The store does not answer.", retry_after=2)

    assert (await api.get("/api/v1/me")).status_code == 200
    monkeypatch.setattr(node.store.driver, "read", away)
    answer = await api.get(KEYS)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert answer.json()["type"] == "urn:horae:store-unavailable"


async def test_an_unexpected_error_reveals_no_details(api: Api, node: ServerNode, monkeypatch, capsys):
    async def broken(*_: object, **__: object):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(node.tenancy.keys, "list", broken)
    answer = await api.get(KEYS)
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.json()["remedy"]
    assert "secret detail" in capsys.readouterr().out


async def test_ready_follows_the_store_and_health_does_not(anonymous: Api, node: ServerNode):
    assert (await anonymous.get("/readyz")).json()["status"] == "ready"
    node.ready = False
    answer = await anonymous.get("/readyz")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.headers["content-type"] == "application/problem+json"
    assert (await anonymous.get("/healthz")).status_code == 200
