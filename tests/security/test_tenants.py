"""Tenants: requests that name another tenant's objects are answered as if these did not exist, and change nothing."""

import asyncio
import re
from typing import Any
from uuid import UUID

import httpx2
import msgspec
import pytest

from horae.engine.server_node import ServerNode
from horae.model.base.event import ChangeEvent
from horae.model.base.ids import parcel_of
from horae.server.openapi import build
from horae.server.routes.table import ROUTES
from horae.store.driver import one
from horae.store.schema import all_tables as schema
from horae.store.script import Statement
from tests.security.conftest import Connect
from tests.security.people import both
from tests.security.tenants import (
    API,
    MAKES,
    Attack,
    Tenant,
    attacks,
    found,
    furnish,
    ghosts,
    ok,
    operations,
    secret,
)

SHARED = {"audit_head"}  # the end of a chain, shared by all tenants


@pytest.fixture
async def pair(node: ServerNode, connect: Connect) -> tuple[Tenant, Tenant]:
    """Create a tenant that attacks, and one that has all kinds of objects."""
    ann, bob = await found(node, connect, "ann"), await found(node, connect, "bob")
    await furnish(node, bob)
    return ann, bob


async def belongings(node: ServerNode, tenant: Tenant) -> dict[str, set[str]]:
    """Return all rows of a tenant, and the rows without a tenant."""
    kept = {}
    for table in schema.metadata.sorted_tables:
        if table.name in SHARED:
            continue
        columns = ", ".join(f'"{column.name}"' for column in table.columns)
        whose = f" WHERE namespace = {tenant.id}" if "namespace" in table.columns else ""
        rows = await node.store.read(one(Statement("all", f"SELECT {columns} FROM {table.name}{whose}")))
        kept[table.name] = {repr(row) for row in rows}
    return kept


def plain(answer: httpx2.Response, values: dict[str, str]) -> tuple[int, str]:
    """Return an answer without parts that repeat the question or are new each time."""
    text = answer.text
    for kind, value in sorted(values.items(), key=lambda pair: -len(pair[1])):
        if kind not in ("file", "step", "version"):
            text = text.replace(value, f"<{kind}>")
    text = re.sub(r"hk_\w+|whsec_[\w+/=]+", "<text>", re.sub(r'"(keyId|code|token|requestId)":"[\w-]+"', "<new>", text))
    return answer.status_code, re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "<id>", text)


def judged(attack: Attack, answer: httpx2.Response, alike: bool) -> str:
    """Return the problem of an answer about another tenant's objects, or nothing when it reveals nothing."""
    if secret("bob") in answer.text:
        return "it tells"
    if answer.status_code >= 500:
        return "it breaks"
    if not alike and attack.operation != "audit.log":  # the answer lists the attacker's own requests
        return "it tells that something is there"
    if answer.status_code < 300 and attack.names and attack.operation not in {*MAKES, "audit.log"}:
        told = answer.json()
        counts = (told.get(name) for name in ("matched", "accepted", "erased"))
        nothing = told.get("items") == [] or 0 in counts
        return "" if nothing else "it answers"
    return ""


@both
async def test_objects_of_other_tenants_answer_like_missing_ones(node: ServerNode, pair: tuple[Tenant, Tenant]):
    ann, bob = pair
    nobody = ghosts(bob.values)
    before = await belongings(node, bob)
    tried: set[str] = set()
    wrong = []
    for path, method, operation in operations(msgspec.json.decode(msgspec.json.encode(build(ROUTES)))):
        name = operation["operationId"]
        asked = zip(attacks(path, method, operation, bob.values), attacks(path, method, operation, nobody), strict=True)
        for of_bob, of_nobody in asked:
            if name == "stream.follow" and not of_bob.query:
                continue  # it does not end: see below
            tried.add(name)
            answer, made_up = await of_bob.send(ann), await of_nobody.send(ann)
            if told := judged(of_bob, answer, plain(answer, bob.values) == plain(made_up, nobody)):
                wrong.append((told, *msgspec.structs.astuple(of_bob), answer.status_code, answer.text, made_up.text))
    assert wrong == []
    assert len(tried) > 130
    after = await belongings(node, bob)
    changed = {name: rows - after[name] for name, rows in before.items() if rows - after[name]}
    assert changed == {}


async def test_no_list_shows_objects_of_other_tenants(node: ServerNode, pair: tuple[Tenant, Tenant]):
    ann, _ = pair
    for path, method, operation in operations(msgspec.json.decode(msgspec.json.encode(build(ROUTES)))):
        if method == "get" and "{" not in path and operation["operationId"] != "stream.follow":
            answer = await ann.api.get(path, params={"from": "2026-01-01T00:00:00Z", "to": "2030-01-01T00:00:00Z"})
            if answer.status_code == 400:  # it knows no such span
                answer = await ann.api.get(path)
            assert "bob" not in answer.text, (path, answer.text)


async def test_items_of_a_batch_are_looked_up_one_by_one(node: ServerNode, pair: tuple[Tenant, Tenant]):
    ann, bob = pair
    await ok(await ann.api.post(f"{API}/jobs", json={"name": "mine", "command": ["true"]}))
    items = [{"job": "mine"}, {"job": bob.values["job"]}, {"job": bob.values["job_name"]}]
    before = await belongings(node, bob)
    many = await ann.api.post(f"{API}/executions", json={"items": items})
    assert (many.status_code, many.json()["accepted"], many.json()["refused"]) == (207, 1, 2)
    assert [one["error"]["status"] for one in many.json()["items"][1:]] == [404, 404]
    none = await ann.api.post(f"{API}/executions", json={"items": items, "atomic": True})
    assert none.status_code == 404
    retried = await ann.api.post(f"{API}/dlq/retry", json={"ids": [bob.values["failed"]]})
    assert retried.status_code == 404
    assert (await belongings(node, bob))["queued"] == before["queued"]
    assert (await belongings(node, bob))["parcels"] == before["parcels"]


@both
async def test_reports_about_foreign_executions_change_nothing(node: ServerNode, pair: tuple[Tenant, Tenant]):
    ann, bob = pair
    queues = [bob.values["queue"], "default"]
    presence = {"protocol": 1, "worker": bob.values["worker"], "concurrency": 5, "queues": queues}
    session = (await ok(await ann.worker.post(f"{API}/sessions", json=presence)))["sessionId"]
    here = f"{API}/sessions/{session}"
    item = {"parcel": bob.values["parcel"], "attempt": 1}
    before = await belongings(node, bob)
    told = {
        "channel": 0, "n": 1, "free": 5, "prefetch": {bob.values["job"]: 5},
        "outcomes": [{**item, "lo": 0, "hi": 1, "outcome": "success", "results": [1]}],
        "started": [{**item, "lo": 0, "hi": 1, "at": 1}],
        "progress": [{**item, "item": 0, "percent": 50}],
        "logs": [{**item, "item": 0, "seq": 7, "lines": [[1, "stdout", "mine"]]}],
    }  # fmt: skip
    answer = await ok(await ann.worker.post(f"{here}/exchange", json=told))
    assert answer.get("slices", []) == []
    assert [one["parcel"] for one in answer["ignored"]] == [bob.values["parcel"]]
    place = {**item, "item": 0}
    for path, body in (
        ("executions", {**place, "call": "1", "submissions": [{"job": "x"}]}),
        ("awaits", {**place, "step": "s", "signal": "later"}),
    ):
        assert (await ann.worker.post(f"{here}/{path}", json=body)).status_code == 409
    kept = await ok(await ann.worker.post(f"{here}/steps", json={"steps": [{**place, "name": "first"}]}))
    assert secret("bob") not in str(kept)
    known = await ann.worker.get(f"{here}/steps", params={"parcel": item["parcel"], "item": 0})
    assert known.status_code == 409
    sent = await ann.worker.put(f"{here}/artifacts/out.txt", params=place, content=b"mine")
    assert sent.status_code == 409
    after = await belongings(node, bob)
    assert {name: rows - after[name] for name, rows in before.items() if rows - after[name]} == {}
    # With the other tenant's session, no report is accepted at all.
    stolen = f"{API}/sessions/{bob.values['session']}"
    assert (await ann.worker.post(f"{stolen}/exchange", json={**told, "n": 5})).status_code == 404
    assert (await ann.worker.delete(stolen)).status_code == 404


async def test_a_stream_carries_only_events_of_its_namespace(node: ServerNode, pair: tuple[Tenant, Tenant]):
    ann, bob = pair
    for kind in ("running", "queued", "flow", "failed"):
        answer = await ann.api.get(f"{API}/stream", params={"execution": bob.values[kind]})
        assert (answer.status_code, answer.json()["type"]) == (404, "urn:horae:not-found")
    mine: asyncio.Queue[ChangeEvent | None] = asyncio.Queue()
    theirs: asyncio.Queue[ChangeEvent | None] = asyncio.Queue()
    with node.base.events.listening(ann.id, mine.put_nowait), node.base.events.listening(bob.id, theirs.put_nowait):
        await ok(await bob.api.post(f"{API}/executions", json={"job": bob.values["job"]}))
        await ok(await bob.api.post(f"{API}/executions/{bob.values['queued']}/cancel", json={}))
        await ok(await bob.api.post(f"{API}/jobs/{bob.values['job']}/pause"))
        await ok(await bob.api.post(f"{API}/executions/{bob.values['flow']}/approve", json={}))
        await ok(await bob.api.delete(f"{API}/queues/{bob.values['queue']}/hold"))
        await ok(await bob.api.post(f"{API}/jobs/{bob.values['job']}/circuit/close", json={}))
        await ok(await ann.api.post(f"{API}/jobs", json={"name": "mine", "command": ["true"]}))
        first = await asyncio.wait_for(mine.get(), 30)
        assert first is not None
        assert (first.kind, first.namespace) == ("job", ann.id)
        heard = set()
        while len(heard) < 4:
            event = await asyncio.wait_for(theirs.get(), 30)
            assert event is not None
            assert event.namespace == bob.id
            heard.add(event.kind)


@both
async def test_equal_names_in_two_namespaces_are_independent(node: ServerNode, connect: Connect):
    """Queues, jobs, calendars, templates, keys of submissions and of limits, events: each namespace has its own."""
    ann, bob = await found(node, connect, "ann"), await found(node, connect, "bob")
    made: dict[str, dict[str, Any]] = {}
    for tenant in (ann, bob):
        api, told = tenant.api, secret(tenant.name)
        await ok(await api.put(f"{API}/queues/shared", json={"maxQueued": 2, "concurrency": 1}))
        await ok(await api.put(f"{API}/calendars/shared", json={"dates": ["2031-12-24"], "description": told}))
        job = {
            "name": "shared", "command": ["true"], "queue": "shared", "description": told,
            "limits": [{"key": "one", "concurrency": 1}], "sequence": "${params.s}",
            "triggers": [{"name": "heard", "event": "shared"}], "params": {"s": "1"},
        }  # fmt: skip
        made[tenant.name] = await ok(await api.post(f"{API}/jobs", json=job))
    await node.admission.quotas.step()
    ids = {}
    for tenant in (ann, bob):
        again = {"idempotency-key": "same"}
        for _ in range(2):
            one_ = await ok(
                await tenant.api.post(f"{API}/executions", json={"job": "shared", "key": "same"}, headers=again)
            )
            ids.setdefault(tenant.name, set()).add(one_["executionId"])
        await ok(await tenant.api.put(f"{API}/queues/other", json={}, headers=again))
    assert [len(some) for some in ids.values()] == [1, 1]
    assert not ids["ann"] & ids["bob"]
    heard = await ok(await ann.api.post(f"{API}/events", json={"name": "shared", "id": "same"}))
    assert len(heard["fired"]) == 1
    theirs = await ok(await bob.api.post(f"{API}/events", json={"name": "shared", "id": "same"}))
    assert (len(theirs["fired"]), theirs["repeated"]) == (1, False)
    await ok(await ann.api.post(f"{API}/queues/shared/pause", json={}))
    assert (await ok(await bob.api.get(f"{API}/queues/shared")))["state"] == "active"
    held = {}
    for tenant in (ann, bob):
        await node.base.directory.step()
        await node.admission.hold_watch.step()
        presence = {"protocol": 1, "worker": "shared", "concurrency": 5, "queues": ["shared"]}
        session = (await ok(await tenant.worker.post(f"{API}/sessions", json=presence)))["sessionId"]
        asked = {"channel": 0, "n": 1, "free": 5}
        answer = await ok(await tenant.worker.post(f"{API}/sessions/{session}/exchange", json=asked))
        held[tenant.name] = answer.get("slices", [])
    assert held["ann"] == []
    assert [str(parcel_of(UUID(id))) for id in ids["bob"]] == [slice["parcel"] for slice in held["bob"]]
    await ok(await ann.api.delete(f"{API}/jobs/shared", params={"queued": "cancel"}))
    assert (await ok(await bob.api.get(f"{API}/jobs/shared")))["description"] == secret("bob")


async def test_a_namespace_is_never_taken_from_a_body_or_a_query(node: ServerNode, pair: tuple[Tenant, Tenant]):
    ann, bob = pair
    tricks = {"namespace": "bob", "namespaceId": bob.id, "Horae-Namespace": "bob"}
    answer = await ann.api.post(f"{API}/jobs", json={"name": "mine", "command": ["true"], **tricks})
    assert answer.status_code == 400
    for query in tricks:
        listed = await ann.api.get(f"{API}/jobs", params={query: "bob"})
        assert listed.status_code == 400 or listed.json()["items"] == []
    assert (await ann.api.get(f"{API}/jobs", headers={"horae-namespace": "bob"})).status_code == 404
    assert (await ann.api.get(f"{API}/jobs", headers={"horae-namespace": "nobody"})).status_code == 404
    assert (await ann.api.get(f"{API}/jobs", headers={"horae-namespace": "ann"})).status_code == 200
    assert (await ann.worker.post(f"{API}/sessions", headers={"horae-namespace": "bob"})).status_code == 404
