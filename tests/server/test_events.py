"""Events over HTTP: sent, repeated, listed; webhooks with good, bad and replayed signatures."""

import asyncio
import hashlib
import hmac
import json

import pytest

from horae.engine.server_node import ServerNode
from horae.env import SECOND, VirtualClock
from horae.errors import Busy
from horae.features.events.part import EventsPart
from horae.model.base.webhook_signature import sign
from tests.server.conftest import Api, Connect

UPLOAD = {"event": "upload", "name": "on-upload", "params": {"file": "${event.payload.key}"}}
S3 = {
    "Records": [
        {
            "eventSource": "aws:s3", "eventName": "ObjectCreated:Put", "eventTime": "2026-01-01T00:00:00Z",
            "s3": {"bucket": {"name": "b"}, "object": {"key": "in%2Fa.csv", "size": 3, "eTag": "e", "sequencer": "1"}},
        }
    ]
}  # fmt: skip


async def job(api: Api, *triggers: dict, name: str = "load", **more) -> str:
    answer = await api.post("/api/v1/jobs", json={"name": name, "command": "true", "triggers": triggers, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()["jobId"]


async def send(api: Api, name: str = "upload", **body):
    return await api.post("/api/v1/events", json={"name": name, **body})


async def executions(api: Api) -> list[dict]:
    return (await api.get("/api/v1/executions")).json()["items"]


async def test_an_event_starts_listening_triggers_and_reports_them(api: Api):
    await job(api, UPLOAD)

    answer = await send(api, payload={"key": "a.csv"}, id="e1")

    assert answer.status_code == 202
    told = answer.json()
    (fired,) = told["fired"]
    assert (told["eventId"], told["repeated"], told["note"], told["skipped"]) == ("e1", False, None, [])
    assert (fired["job"], fired["trigger"]) == ("load", "on-upload")
    execution = (await api.get(f"/api/v1/executions/{fired['executionId']}")).json()
    assert (execution["params"], execution["origin"]) == ({"file": "a.csv"}, "event")


async def test_a_dry_run_returns_the_fires_of_an_event_and_stores_nothing(api: Api):
    await job(
        api, UPLOAD, {**UPLOAD, "name": "large", "filter": "${event.payload.size > 10}"},
        {"event": "upload", "name": "one", "overlap": "skip"},
        {"event": "upload", "name": "two", "overlap": "queueAll"},
    )  # fmt: skip
    await send(api, payload={"key": "a.csv"}, id="e1")
    path = "/api/v1/events?dryRun=true"

    plan = (await api.post(path, json={"name": "upload", "payload": {"key": "b.csv", "size": 5}, "id": "e2"})).json()

    assert [one["trigger"] for one in plan["fires"]] == ["on-upload", "two"]
    assert [(one["trigger"], one["cause"]) for one in plan["skipped"]] == [
        ("large", "the filter is false"), ("one", "the execution of the last fire had not ended"),
    ]  # fmt: skip
    again = (await api.post(path, json={"name": "upload", "payload": {"key": "a.csv"}, "id": "e1"})).json()
    assert (again["fires"], again["skipped"], again["repeated"]) == ([], [], True)
    assert (await api.post(path, json={"name": "upload", "id": "e1"})).status_code == 409
    unheard = (await api.post(path, json={"name": "uplaod"})).json()
    assert unheard["note"].endswith('it would be stored and fire nothing. Did you mean "upload"?')
    assert (await api.post(path, json={"events": []})).status_code == 400
    assert [one["eventId"] for one in (await api.get("/api/v1/events")).json()["items"]] == ["e1"]
    assert len(await executions(api)) == 3


async def test_an_event_that_queues_waits_for_the_execution_before_it(api: Api):
    await job(api, {**UPLOAD, "overlap": "queueOne"})

    sent = [(await send(api, payload={"key": n})).json() for n in range(3)]

    made = [told["fired"][0]["executionId"] for told in sent]
    states = [(await api.get(f"/api/v1/executions/{id}")).json()["status"] for id in made]
    assert states == ["queued", "skipped", "waiting"]


async def test_a_trigger_counts_the_events_that_fired_it(api: Api):
    await job(api, UPLOAD)
    for n in range(3):
        last = await send(api, payload={"key": n})
    await send(api, payload={})

    trigger = (await api.get("/api/v1/jobs/load/triggers/on-upload")).json()

    assert (trigger["fired"], trigger["kind"]) == (3, "event")
    assert trigger["lastExecutionId"] in {e["executionId"] for e in await executions(api)}
    assert last.json()["fired"]


async def test_fires_by_events_are_listed(api: Api, clock: VirtualClock):
    await job(api, {**UPLOAD, "filter": '${event.payload.key != "2"}'})
    await api.post(
        "/api/v1/events", json={"events": [{"name": "upload", "payload": {"key": f"{n}"}} for n in range(5)]}
    )
    clock.advance(SECOND)

    found, cursor = [], None
    while cursor is not None or not found:
        page = (await api.get("/api/v1/fires", params={"limit": 2, **({"cursor": cursor} if cursor else {})})).json()
        found += page["items"]
        cursor = page["nextCursor"]

    assert [fire["disposition"] for fire in found] == ["fired", "fired", "skipped-filter", "fired", "fired"]
    assert {(fire["job"], fire["trigger"]) for fire in found} == {("load", "on-upload")}
    only = await api.get("/api/v1/fires", params={"disposition": "skipped-filter", "job": "load"})
    assert [fire["cause"] for fire in only.json()["items"]] == ["the filter is false"]


async def test_an_event_without_listeners_is_recorded_as_such(api: Api):
    await job(api, UPLOAD)

    answer = await send(api, "uplaod")

    assert answer.status_code == 202
    told = answer.json()
    assert (told["fired"], told["skipped"]) == ([], [])
    assert 'No trigger listens to "uplaod"' in told["note"]
    assert 'Did you mean "upload"?' in told["note"]
    assert await executions(api) == []


async def test_a_repeated_event_id_gets_the_same_answer_and_fires_nothing(api: Api):
    await job(api, UPLOAD)
    first = await send(api, payload={"key": "a"}, id="e1")

    again = await send(api, payload={"key": "a"}, id="e1")

    assert (first.status_code, again.status_code) == (202, 200)
    assert again.json()["repeated"]
    assert again.json()["fired"] == first.json()["fired"]
    assert len(await executions(api)) == 1


async def test_an_id_with_another_payload_is_refused(api: Api):
    await job(api, UPLOAD)
    await send(api, payload={"key": "a"}, id="e1")

    answer = await send(api, payload={"key": "b"}, id="e1")

    assert answer.status_code == 409
    assert "another payload" in answer.json()["detail"]
    both = [{"name": "upload", "payload": {"key": "c"}, "id": "e2"}, {"name": "upload", "payload": {}, "id": "e1"}]
    assert (await api.post("/api/v1/events", json={"events": both})).status_code == 409
    assert len(await executions(api)) == 1
    assert len((await api.get("/api/v1/events")).json()["items"]) == 1


async def test_concurrent_events_are_stored_together_and_only_the_faulty_one_is_refused(api: Api, node: ServerNode):
    await job(api, UPLOAD)
    await send(api, payload={"key": "a"}, id="e1")
    statements = node.store.driver.statements
    before = statements["insert events"]
    answers = await asyncio.gather(*(send(api, payload={"key": "x"}, id=f"n{n}") for n in range(20)))
    assert {answer.status_code for answer in answers} == {202}
    assert statements["insert events"] - before <= 2

    answers = await asyncio.gather(
        *(send(api, payload={"key": "x"}, id=f"m{n}") for n in range(5)),
        send(api, payload={"key": "other"}, id="e1"),
        send(api, payload={"key": "a"}, id="e1"),
    )
    assert sorted(answer.status_code for answer in answers) == [200, *[202] * 5, 409]
    assert len(await executions(api)) == 26


async def test_a_repeated_request_is_the_same_event(api: Api):
    await job(api, UPLOAD)

    for _ in range(2):
        await api.post(
            "/api/v1/events", json={"name": "upload", "payload": {"key": "a"}}, headers={"idempotency-key": "k1"}
        )

    assert len(await executions(api)) == 1


async def test_an_idempotency_key_needs_no_bound_if_every_event_has_an_id(api: Api):
    headers = {"idempotency-key": "k" * 250}

    named = await api.post("/api/v1/events", json={"name": "upload", "id": "e1"}, headers=headers)
    unnamed = await api.post("/api/v1/events", json={"name": "upload"}, headers=headers)

    assert (named.status_code, unnamed.status_code) == (202, 400)


async def test_many_events_are_accepted_together_or_not_at_all(api: Api):
    await job(api, UPLOAD)
    events = [{"name": "upload", "payload": {"key": f"{i}"}, "id": f"e{i}"} for i in range(3)]

    wrong = await api.post("/api/v1/events", json={"events": [*events, {"name": "a b"}]})
    assert (wrong.status_code, wrong.json()["field"]) == (400, "events[3].name")
    assert await executions(api) == []

    answer = await api.post("/api/v1/events", json={"events": [*events, events[0]]})
    assert answer.status_code == 202
    assert (answer.json()["fired"], answer.json()["repeated"]) == (3, 1)
    assert (await api.post("/api/v1/events", json={"events": events})).status_code == 200


@pytest.mark.parametrize("body", [{}, {"name": "x", "payload": "y" * 300_000}, {"events": []}, {"nam": "x"}])
async def test_invalid_events_are_refused(api: Api, body):
    assert (await api.post("/api/v1/events", json=body)).status_code in (400, 413)


async def test_history_has_the_fires_of_each_event_and_the_reasons_of_skipped_ones(api: Api, clock: VirtualClock):
    await job(api, {**UPLOAD, "filter": "${event.payload.size > 10}"})
    for size in (11, 9):
        await send(api, payload={"key": "a", "size": size}, id=f"e{size}")
        clock.advance(SECOND)
    await send(api, "other", id="x")

    everything = (await api.get("/api/v1/events")).json()["items"]
    assert [event["eventId"] for event in everything] == ["x", "e9", "e11"]
    (skipped,) = everything[1]["skipped"]
    assert (skipped["disposition"], skipped["cause"]) == ("skipped-filter", "the filter is false")
    assert everything[2]["fired"][0]["job"] == "load"
    assert everything[2]["payload"] == {"key": "a", "size": 11}
    page = (await api.get("/api/v1/events", params={"name": "upload", "limit": 1})).json()
    assert [event["eventId"] for event in page["items"]] == ["e9"]
    rest = await api.get("/api/v1/events", params={"name": "upload", "cursor": page["nextCursor"]})
    assert [event["eventId"] for event in rest.json()["items"]] == ["e11"]


async def test_params_that_do_not_fit_the_schema_are_recorded_as_such(api: Api):
    schema = {"type": "object", "properties": {"file": {"type": "string"}}}
    await job(api, UPLOAD, schema=schema)

    told = (await send(api, payload={"key": 7})).json()

    assert told["skipped"][0]["disposition"] == "skipped-params"
    assert await executions(api) == []


async def test_only_an_administrator_sends_events(app, connect: Connect, worker: Api):
    assert (await connect().post("/api/v1/events", json={"name": "x"})).status_code == 401
    assert (await worker.post("/api/v1/events", json={"name": "x"})).status_code == 403


# Webhooks


async def hook(api: Api, trigger: dict, **body) -> dict:
    await job(api, {"name": "hook", **trigger})
    answer = await api.post("/api/v1/jobs/load/triggers/hook/webhook", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def path(made: dict) -> str:
    return made["url"][made["url"].index("/api/") :]


def signed(made: dict, clock: VirtualClock, body: bytes, id: str = "msg_1", ago: int = 0) -> dict[str, str]:
    at = clock.now() // SECOND - ago
    signature = sign(made["secret"], id, at, body)
    return {"webhook-id": id, "webhook-timestamp": str(at), "webhook-signature": signature}


async def call(api: Api, made: dict, body: bytes, headers: dict[str, str]):
    return await api.post(path(made), content=body, headers=headers)


async def counted(api: Api, outcome: str) -> float:
    text = (await api.get("/metrics")).text
    line = next(line for line in text.splitlines() if line.startswith(f'horae_webhooks_total{{outcome="{outcome}"}}'))
    return float(line.split()[-1])


async def test_a_signed_webhook_fires_its_trigger(api: Api, connect: Connect, clock: VirtualClock):
    made = await hook(api, {"webhook": True, "params": {"n": "${event.payload.n}"}})
    body = b'{"n": 7, "type": "order.paid"}'

    answer = await call(connect(), made, body, signed(made, clock, body))

    assert answer.status_code == 202, answer.text
    assert answer.json() == {"eventIds": ["msg_1"], "fired": 1, "repeated": False, "note": None}
    (execution,) = await executions(api)
    assert execution["params"] == {"n": 7}
    (event,) = (await api.get("/api/v1/events")).json()["items"]
    assert (event["source"], event["type"], event["name"]) == ("webhook", "order.paid", "hook")
    assert await counted(api, "accepted") == 1


async def test_a_bad_signature_is_refused_and_changes_nothing(api: Api, connect: Connect, clock: VirtualClock):
    made = await hook(api, {"webhook": True})
    good = signed(made, clock, b"{}")
    forged = {**good, "webhook-signature": sign("whsec_" + "A" * 32, "msg_1", clock.now() // SECOND, b"{}")}

    for headers, body in ((forged, b"{}"), (good, b'{"changed": true}'), ({}, b"{}")):
        answer = await call(connect(), made, body, headers)
        assert answer.status_code == 401
        assert answer.json()["type"] == "urn:horae:bad-signature"
        assert answer.json()["remedy"]
    assert await executions(api) == []
    assert (await api.get("/api/v1/events")).json()["items"] == []
    assert await counted(api, "unsigned") == 3


async def test_a_replayed_signature_fires_nothing(api: Api, connect: Connect, clock: VirtualClock):
    made = await hook(api, {"webhook": True})
    headers = signed(made, clock, b"{}")
    assert (await call(connect(), made, b"{}", headers)).status_code == 202

    again = await call(connect(), made, b"{}", headers)
    assert (again.status_code, again.json()["repeated"], again.json()["fired"]) == (200, True, 0)
    assert "was sent before" in again.json()["note"]

    clock.advance(301 * SECOND)
    stale = await call(connect(), made, b"{}", headers)
    assert (stale.status_code, stale.json()["type"]) == (401, "urn:horae:bad-signature")
    assert "replay" in stale.json()["detail"]

    retried = await call(connect(), made, b"{}", signed(made, clock, b"{}"))
    assert retried.json()["repeated"]
    assert len(await executions(api)) == 1
    assert (await counted(api, "repeated"), await counted(api, "unsigned")) == (2, 1)


async def test_githubs_signature_and_a_secret_of_ones_own(api: Api, connect: Connect):
    secret = "a secret that github knows"
    made = await hook(api, {"webhook": True, "filter": '${event.type == "push"}'}, secret=secret)
    body = b'{"ref": "refs/heads/main"}'
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {"x-hub-signature-256": f"sha256={digest}", "x-github-event": "push", "x-github-delivery": "d1"}

    assert (await call(connect(), made, body, headers)).json()["fired"] == 1
    replayed = await call(connect(), made, body, {**headers, "x-github-delivery": "made-up"})
    assert replayed.json()["repeated"]
    assert len(await executions(api)) == 1


async def test_a_named_event_by_webhook_fires_all_listening_triggers(api: Api, connect: Connect, clock: VirtualClock):
    made = await hook(api, {"webhook": True, "event": "push"})
    await job(api, {"event": "push"}, name="other")

    answer = await call(connect(), made, b"{}", signed(made, clock, b"{}"))

    assert answer.json()["fired"] == 2


async def test_object_stores_cannot_sign_so_the_url_is_the_secret(api: Api, connect: Connect):
    made = await hook(api, {"webhook": {"verify": "none"}, "params": {"key": "${event.payload.key}"}})
    assert "secret" not in made
    assert "Anyone with the URL" in made["note"]

    answer = await call(connect(), made, json.dumps(S3).encode(), {})
    assert (answer.status_code, answer.json()["fired"]) == (202, 1)
    assert (await call(connect(), made, json.dumps(S3).encode(), {})).json()["repeated"]
    (execution,) = await executions(api)
    assert execution["params"] == {"key": "in/a.csv"}


async def test_a_push_of_google_cloud_storage_fires_once_however_often_it_is_delivered(api: Api, connect: Connect):
    only = '${event.source == "gcs" && event.payload.action == "created"}'
    made = await hook(api, {"webhook": {"verify": "none"}, "filter": only, "params": {"key": "${event.payload.key}"}})
    about = {"bucketId": "drop", "objectId": "in/a.csv", "objectGeneration": "1", "payloadFormat": "NONE"}

    def push(**more: str) -> bytes:
        told = {**about, "eventTime": "2026-03-01T00:00:00Z", **more}
        return json.dumps({"message": {"attributes": told, "messageId": "7"}, "subscription": "projects/p/s"}).encode()

    first = await call(connect(), made, push(eventType="OBJECT_FINALIZE"), {})
    again = await call(connect(), made, push(eventType="OBJECT_FINALIZE"), {})
    gone = await call(connect(), made, push(eventType="OBJECT_DELETE"), {})

    assert (first.status_code, first.json()["fired"]) == (202, 1)
    assert (again.status_code, again.json()["repeated"]) == (200, True)
    assert (gone.status_code, gone.json()["fired"]) == (202, 0)
    (execution,) = await executions(api)
    assert execution["params"] == {"key": "in/a.csv"}


async def test_messages_about_the_subscription_itself_are_stored_and_fire_nothing(api: Api, connect: Connect):
    made = await hook(api, {"webhook": {"verify": "none"}})
    body = {
        "Type": "SubscriptionConfirmation", "MessageId": "m1", "TopicArn": "arn:aws:sns:eu-west-1:1:t", "Message": "",
        "SubscribeURL": "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription",
    }  # fmt: skip

    answer = await call(connect(), made, json.dumps(body).encode(), {})

    assert (answer.status_code, answer.json()["fired"]) == (202, 0)
    assert "open https://sns.eu-west-1.amazonaws.com" in answer.json()["note"]
    (event,) = (await api.get("/api/v1/events")).json()["items"]
    assert "Confirm the subscription" in event["note"]
    assert await executions(api) == []


@pytest.mark.parametrize(("body", "status"), [(b"{", 400), (b"\xff", 400), (b'"' + b"x" * 300_000 + b'"', 413)])
async def test_a_body_that_cannot_be_taken_is_refused(api: Api, connect: Connect, body: bytes, status: int):
    made = await hook(api, {"webhook": {"verify": "none"}})

    assert (await call(connect(), made, body, {})).status_code == status
    assert (await call(connect(), made, b"x" * 2_000_000, {})).status_code == 413
    assert await counted(api, "unreadable") == 1


async def test_a_call_that_the_server_cannot_verify_is_not_counted_as_unreadable(
    api: Api, connect: Connect, node: ServerNode, monkeypatch
):
    made = await hook(api, {"webhook": True})

    async def fails(*_: object) -> list[str]:
        raise Busy("This webhook cannot be verified now.", "Send it again later.")

    monkeypatch.setattr(node.part(EventsPart).hook_secrets, "valid", fails)
    assert (await call(connect(), made, b"{}", {})).status_code == 503
    assert await counted(api, "unreadable") == 0


async def test_an_unknown_token_is_not_found(api: Api, connect: Connect):
    made = await hook(api, {"webhook": True})
    token = path(made).rpartition("/")[2]

    for wrong in ("x", token[:-1], token + "x", token.upper()):
        answer = await connect().post(f"/api/v1/hooks/{wrong}", content=b"{}")
        assert answer.status_code == 404
    assert await counted(api, "unknown") == 4


async def test_a_secret_is_changed_while_the_old_one_stays_valid(api: Api, connect: Connect, clock: VirtualClock):
    made = await hook(api, {"webhook": True})
    changed = (await api.post("/api/v1/jobs/load/triggers/hook/webhook", json={"overlap": "1h"})).json()
    assert "url" not in changed
    assert changed["secret"] != made["secret"]
    assert changed["oldValidUntil"]

    for n, secret in enumerate((made["secret"], changed["secret"])):
        headers = signed({"secret": secret}, clock, b"{}", id=f"m{n}")
        assert (await call(connect(), made, b"{}", headers)).status_code == 202
    clock.advance(3600 * SECOND)
    assert (await call(connect(), made, b"{}", signed(made, clock, b"{}", id="m3"))).status_code == 401
    assert (await call(connect(), made, b"{}", signed(changed, clock, b"{}", id="m4"))).status_code == 202


async def test_a_secret_that_is_promised_to_stay_valid_is_not_displaced(api: Api):
    await hook(api, {"webhook": True})
    address = "/api/v1/jobs/load/triggers/hook/webhook"
    for _ in range(3):
        assert (await api.post(address, json={"overlap": "1h"})).status_code == 201
    refused = await api.post(address, json={"overlap": "1h"})
    assert (refused.status_code, refused.json()["field"]) == (400, "overlap")
    assert (await api.post(address, json={"overlap": "0s"})).status_code == 201
    assert (await api.post(address, json={"overlap": "1h"})).status_code == 201


async def test_a_new_url_takes_over_from_the_old_one(api: Api, connect: Connect, clock: VirtualClock):
    made = await hook(api, {"webhook": {"verify": "none"}})
    other = (await api.post("/api/v1/jobs/load/triggers/hook/webhook", json={"overlap": "1h"})).json()
    assert path(other) != path(made)

    assert [(await call(connect(), one, b"{}", {})).status_code for one in (made, other)] == [202, 202]
    clock.advance(3600 * SECOND)
    assert [(await call(connect(), one, b"{}", {})).status_code for one in (made, other)] == [404, 202]


async def test_url_and_secret_are_shown_once(api: Api):
    await job(api, {"name": "hook", "webhook": True})
    headers = {"idempotency-key": "k"}
    address = "/api/v1/jobs/load/triggers/hook/webhook"
    assert (await api.get(address)).status_code == 404
    first = await api.post(address, json={}, headers=headers)
    assert {"url", "secret"} <= first.json().keys()

    for answer in (await api.post(address, json={}, headers=headers), await api.get(address)):
        assert answer.status_code in (200, 201)
        assert not {"url", "secret"} & answer.json().keys()
    text = (await api.get("/api/v1/jobs/load")).text + (await api.get("/api/v1/events")).text
    assert first.json()["secret"] not in text


async def test_a_webhook_ends_at_once_and_with_its_trigger(api: Api, connect: Connect):
    made = await hook(api, {"webhook": {"verify": "none"}})
    assert (await api.delete("/api/v1/jobs/load/triggers/hook/webhook")).status_code == 204
    assert (await call(connect(), made, b"{}", {})).status_code == 404
    again = (await api.post("/api/v1/jobs/load/triggers/hook/webhook", json={})).json()
    assert (await call(connect(), again, b"{}", {})).status_code == 202

    await api.patch("/api/v1/jobs/load", json={"triggers": []})

    assert (await call(connect(), again, b"{}", {})).status_code == 404


@pytest.mark.parametrize(
    ("trigger", "address", "status"),
    [
        ({"event": "x"}, "load/triggers/hook", 400),
        ({"webhook": True}, "load/triggers/other", 404),
        ({"webhook": True}, "nope/triggers/hook", 404),
    ],
)
async def test_a_webhook_belongs_to_a_trigger_that_asks_for_one(api: Api, trigger, address, status):
    await job(api, {"name": "hook", **trigger})

    answer = await api.post(f"/api/v1/jobs/{address}/webhook", json={})

    assert answer.status_code == status
    assert answer.json()["remedy"]


async def test_a_weak_secret_is_refused(api: Api):
    await job(api, {"name": "hook", "webhook": True})

    answer = await api.post("/api/v1/jobs/load/triggers/hook/webhook", json={"secret": "short"})

    assert (answer.status_code, answer.json()["field"]) == (400, "secret")


async def test_events_for_a_paused_job_are_stored_and_fire_nothing(api: Api, connect: Connect):
    made = await hook(api, {"webhook": {"verify": "none"}})
    await api.post("/api/v1/jobs/load/pause")

    assert (await call(connect(), made, b"{}", {})).json()["fired"] == 0
    (event,) = (await api.get("/api/v1/events")).json()["items"]
    assert event["skipped"][0]["disposition"] == "skipped-paused"


async def test_a_place_that_may_not_be_watched_is_refused(api: Api):
    body = {"name": "w", "command": "true", "triggers": [{"watch": "/etc"}]}

    answer = await api.post("/api/v1/jobs", json=body)

    assert answer.status_code == 400
    assert answer.json()["field"] == "triggers.watch.watch"
    assert "HORAE_WATCH_ROOTS" in answer.json()["remedy"]
