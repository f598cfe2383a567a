"""The session routes: requests of workers reach the gateway, and its answers are returned unchanged."""

from uuid import UUID

import msgspec
import pytest
from msgspec import structs

from horae.engine.parts.part import ROLES
from horae.engine.server_node import ServerNode
from horae.env import SECOND
from horae.model.fleet.protocol import PROTOCOL, Answer, Exchange, Registered
from horae.store.driver import one
from horae.store.script import Statement
from tests.server.conftest import Api, Connect, key_for
from tests.server.test_jobs import create
from tests.server.working import HandWorker

NOBODY = "0198c5a0-0000-7000-8000-000000000000"


def presence(**more: object) -> dict[str, object]:
    return {"protocol": PROTOCOL, "worker": "w1", "concurrency": 2, **more}


async def register(api: Api, /, **more: object) -> Registered:
    answer = await api.post("/api/v1/sessions", json=presence(**more))
    assert answer.status_code == 201
    return msgspec.json.decode(answer.content, type=Registered)


def exchange(n: int = 1, **more: object) -> bytes:
    return msgspec.json.encode(Exchange(channel=0, n=n, **more))


async def test_a_worker_registers_exchanges_and_leaves(worker: Api):
    session = (await register(worker)).session_id

    answer = await worker.post(f"/api/v1/sessions/{session}/exchange", content=exchange())

    assert answer.status_code == 200
    assert msgspec.json.decode(answer.content, type=Answer).slices == []
    assert (await worker.delete(f"/api/v1/sessions/{session}")).status_code == 204
    answer = await worker.post(f"/api/v1/sessions/{session}/exchange", content=exchange(2))
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:horae:session-ended")


async def test_a_key_for_queues_registers_workers_of_these_queues_only(node: ServerNode, connect: Connect):
    made = await node.tenancy.keys.create(1, "fleet", "worker", queues=("mine", "ours"))
    worker = connect(authorization=f"Bearer {made.text}")

    for queues, word in ((["mine", "other"], "queues other."), (["other", "two"], "queues other, two.")):
        refused = await worker.post("/api/v1/sessions", json=presence(queues=queues))
        assert refused.status_code == 403
        assert word in refused.json()["detail"]
        assert "--queue mine --queue ours" in refused.json()["remedy"]
    default = await worker.post("/api/v1/sessions", json=presence())
    assert (default.status_code, "queues default." in default.json()["detail"]) == (403, True)
    empty = await worker.post("/api/v1/sessions", json=presence(queues=[]))
    assert (empty.status_code, empty.json()["field"]) == (400, "queues")
    await register(worker, queues=["mine"])


async def test_a_key_for_some_jobs_registers_no_worker(node: ServerNode, connect: Connect):
    made = await node.tenancy.keys.create(1, "some", "admin", jobs=("etl-*",), queues=("mine",))
    refused = await connect(authorization=f"Bearer {made.text}").post(
        "/api/v1/sessions", json=presence(queues=["mine"])
    )
    assert refused.status_code == 403
    assert "This key is for some jobs only" in refused.json()["detail"]
    assert "horae keys create" in refused.json()["remedy"]


@pytest.mark.parametrize("protocol", [0, PROTOCOL + 1, 99])
async def test_another_protocol_is_426_with_a_remedy(worker: Api, protocol: int):
    answer = await worker.post("/api/v1/sessions", json=presence(protocol=protocol))
    assert (answer.status_code, answer.json()["type"]) == (426, "urn:horae:protocol-mismatch")
    assert "pgrade" in answer.json()["remedy"]


async def test_unknown_fields_of_newer_workers_are_ignored(worker: Api):
    await register(worker, temperature=20)


TOO_MUCH = {
    "queues": [f"q{at}" for at in range(1001)],
    "functions": [{"name": f"f{at}"} for at in range(5001)],
    "labels": {f"l{at}": "" for at in range(65)},
    "resources": {f"r{at}": 1 for at in range(65)},
    "weights": {f"q{at}": 1 for at in range(1001)},
    "kinds": [f"k{at}" for at in range(17)],
    "worker": "w" * 201,
    "host": "h" * 256,
    "version": "v" * 129,
}
TOO_LONG = {
    "queues": ["q" * 129], "functions": [{"name": "f" * 513}], "labels": {"l": "x" * 257}, "resources": {"r" * 129: 1},
    "weights": {"": 1}, "kinds": ["k" * 65], "worker": "",
}  # fmt: skip
ESCAPE, TURN = "\x1b]0;mine\x07", "a\u202eb"
WITH_CONTROLS = [
    *({field: text} for field in ("worker", "host", "version") for text in (ESCAPE, TURN, "a\nb", "\x9b2J")),
    *({field: [ESCAPE]} for field in ("queues", "kinds")),
    *({field: {TURN: 1}} for field in ("weights", "resources")),
    {"labels": {ESCAPE: ""}},
    {"labels": {"gpu": ESCAPE}},
    {"functions": [{"name": ESCAPE}]},
]


@pytest.mark.parametrize(("field", "given"), [*TOO_MUCH.items(), *TOO_LONG.items()], ids=lambda one: str(one)[:20])
async def test_a_registration_is_bounded(field: str, given: object, api: Api, worker: Api):
    answer = await worker.post("/api/v1/sessions", json=presence(**{field: given}))

    assert (answer.status_code, field in answer.text) == (400, True)
    assert (await api.get("/api/v1/workers")).json()["items"] == []


@pytest.mark.parametrize("given", WITH_CONTROLS, ids=str)
async def test_a_registration_with_control_characters_is_refused(given: dict[str, object], api: Api, worker: Api):
    answer = await worker.post("/api/v1/sessions", json=presence(**given))

    assert answer.status_code == 400
    assert "control character" in answer.json()["detail"]
    assert (await api.get("/api/v1/workers")).json()["items"] == []


async def test_a_large_registration_is_accepted(worker: Api):
    lists = {field: TOO_MUCH[field][:-1] for field in ("queues", "functions", "kinds")}
    maps = {field: dict(list(TOO_MUCH[field].items())[:-1]) for field in ("labels", "resources", "weights")}
    texts = {field: TOO_MUCH[field][:-1] for field in ("worker", "host", "version")}
    await register(worker, **lists, **maps, **texts)


async def test_a_key_has_a_bounded_number_of_live_sessions(connect: Connect, node: ServerNode, monkeypatch):
    monkeypatch.setattr(node.gateway, "_settings", structs.replace(node.gateway._settings, sessions_per_key=2))
    first, other = [connect(authorization=f"Bearer {await key_for(node, 'worker')}") for _ in range(2)]
    sessions = [(await register(first)).session_id for _ in range(2)]

    refused = await first.post("/api/v1/sessions", json=presence())
    assert (refused.status_code, refused.json()["type"]) == (429, "urn:horae:over-quota")
    assert "sessions_per_key" in refused.json()["remedy"]
    await register(other)
    await first.delete(f"/api/v1/sessions/{sessions[0]}")
    await register(first)


@pytest.mark.parametrize("path", ["exchange", "executions", "steps", "awaits"])
async def test_a_missing_session_is_404(path: str, worker: Api):
    bodies = {
        "exchange": exchange(),
        "executions": msgspec.json.encode(
            {"parcel": NOBODY, "item": 0, "attempt": 1, "call": "1", "submissions": []},
        ),
        "steps": msgspec.json.encode({"steps": [{**ITEM, "name": "s", "result": 1}]}),
        "awaits": msgspec.json.encode({**ITEM, "step": "@wait:s", "signal": "s"}),
    }
    answer = await worker.post(f"/api/v1/sessions/{NOBODY}/{path}", content=bodies[path])
    assert answer.status_code == 404
    assert (await worker.post(f"/api/v1/sessions/nonsense/{path}", content=bodies[path])).status_code == 404


async def test_a_session_belongs_to_its_namespace(worker: Api, connect: Connect, node: ServerNode):
    session = (await register(worker)).session_id
    stranger = connect(authorization=f"Bearer {(await node.tenancy.keys.create(2, 'stranger', 'worker')).text}")

    assert (await stranger.post(f"/api/v1/sessions/{session}/exchange", content=exchange())).status_code == 404
    assert (await stranger.delete(f"/api/v1/sessions/{session}")).status_code == 404


async def test_steps_are_read_only_by_the_session_that_holds_the_item(api: Api, worker: Api):
    await create(api)
    await api.post("/api/v1/executions", json={"job": "report"})
    holder, other = await HandWorker.register(worker), await HandWorker.register(worker, queues=["q2"])
    (grant,) = await holder.take()
    step = {"parcel": str(grant.parcel), "item": 0, "attempt": 1, "name": "charge", "result": "r-1"}
    await worker.post(f"/api/v1/sessions/{holder.session}/steps", json={"steps": [step]})

    async def read(session: UUID, item: int = 0):
        return await worker.get(f"/api/v1/sessions/{session}/steps?parcel={grant.parcel}&item={item}")

    assert (await read(holder.session)).json() == {"steps": {"charge": "r-1"}}
    for refused in (await read(other.session), await read(holder.session, item=1)):
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:horae:conflict")
        assert "r-1" not in refused.text
    await holder.report([grant])
    assert (await read(holder.session)).status_code == 409


async def test_steps_are_read_by_parcel_and_item(worker: Api):
    session = (await register(worker)).session_id
    path = f"/api/v1/sessions/{session}/steps"

    assert (await worker.get(f"{path}?parcel={NOBODY}&item=0")).status_code == 409
    assert (await worker.get(f"{path}?parcel=x&item=0")).json()["field"] == "parcel"
    assert (await worker.get(f"{path}?item=0")).json()["field"] == "parcel"


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"channel": 99, "n": 1}', b'{"channel": 0, "n": 5}', b'{"n": 1}'])
async def test_a_bad_exchange_is_400(body: bytes, worker: Api):
    session = (await register(worker)).session_id
    assert (await worker.post(f"/api/v1/sessions/{session}/exchange", content=body)).status_code == 400


ABSURD = (-1, 1e300, 2**63, 10**30, float("1e19"))
ITEM = {"parcel": NOBODY, "item": 0, "attempt": 1}
SPAN = {"parcel": NOBODY, "lo": 0, "hi": 1, "attempt": 1}
NUMBERS = {
    "free": lambda x: {"free": x},
    "channel": lambda x: {"channel": x},
    "n": lambda x: {"n": x},
    "wait": lambda x: {"wait": x},
    "prefetch": lambda x: {"prefetch": {NOBODY: x}},
    "retryAfter": lambda x: {"outcomes": [{**SPAN, "outcome": "failed", "error": {"type": "E", "retryAfter": x}}]},
    "wakeAt": lambda x: {"outcomes": [{**SPAN, "outcome": "suspended", "wakeAt": x}]},
    "startedAt": lambda x: {"outcomes": [{**SPAN, "outcome": "success", "startedAt": [x]}]},
    "endedAt": lambda x: {"outcomes": [{**SPAN, "outcome": "success", "endedAt": [x]}]},
    "attempt": lambda x: {"outcomes": [{**SPAN, "outcome": "success", "attempt": x}]},
    "lo": lambda x: {"outcomes": [{**SPAN, "outcome": "success", "lo": x}]},
    "hi": lambda x: {"outcomes": [{**SPAN, "outcome": "success", "hi": x}]},
    "at": lambda x: {"started": [{**SPAN, "at": x}]},
    "percent": lambda x: {"progress": [{**ITEM, "percent": x}]},
    "seq": lambda x: {"logs": [{**ITEM, "seq": x, "lines": []}]},
    "line": lambda x: {"logs": [{**ITEM, "seq": 0, "lines": [[x, "stdout", "a"]]}]},
}


async def refused(worker: Api, path: str, body: object) -> None:
    answer = await worker.post(path, content=msgspec.json.encode(body))
    assert answer.status_code == 400, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["remedy"]
    assert answer.json()["field"]


async def test_a_line_number_out_of_range_is_refused(worker: Api):
    path = f"/api/v1/sessions/{(await register(worker)).session_id}/exchange"
    lines = [[1_800_000_000_000_000, "stdout", "a"]]
    await refused(worker, path, {"channel": 0, "n": 1, "logs": [{**ITEM, "seq": 2**31 - 1, "lines": lines}]})


@pytest.mark.parametrize("name", NUMBERS)
async def test_absurd_numbers_in_an_exchange_are_refused_and_change_nothing(name: str, worker: Api):
    session = (await register(worker)).session_id
    path = f"/api/v1/sessions/{session}/exchange"
    for absurd in ABSURD:
        await refused(worker, path, {"channel": 0, "n": 1, **NUMBERS[name](absurd)})

    assert (await worker.post(path, content=exchange(1))).status_code == 200


@pytest.mark.parametrize("wake", [7_289_654_400_000_000, 253_402_300_800_000_000])
async def test_a_sleep_beyond_the_year_2200_is_refused(wake: int, worker: Api):
    session = (await register(worker)).session_id
    await refused(worker, f"/api/v1/sessions/{session}/exchange", {"channel": 0, "n": 1, **NUMBERS["wakeAt"](wake)})


@pytest.mark.parametrize("times", [[1, 2], [1, 2, 3, 4]])
async def test_an_outcome_has_one_time_for_each_item_or_for_all(times: list[int], worker: Api):
    session = (await register(worker)).session_id
    outcome = {**SPAN, "hi": 3, "outcome": "success", "endedAt": times}
    answer = await worker.post(
        f"/api/v1/sessions/{session}/exchange", json={"channel": 0, "n": 1, "outcomes": [outcome]}
    )
    assert (answer.status_code, "one for all" in answer.json()["remedy"]) == (400, True)


@pytest.mark.parametrize("field", ["delay", "at", "keyFor"])
async def test_absurd_numbers_in_children_are_refused_and_submit_nothing(field: str, worker: Api, node: ServerNode):
    session = (await register(worker)).session_id
    for absurd in ABSURD:
        body = {**ITEM, "call": "1", "submissions": [{"job": "a", field: absurd}]}
        await refused(worker, f"/api/v1/sessions/{session}/executions", body)
    too_many = {**ITEM, "call": "1", "submissions": [{"job": "a"}] * 10_001}
    for body in (too_many, *({**ITEM, "call": call, "submissions": [{"job": "a"}]} for call in ("", "c" * 201))):
        await refused(worker, f"/api/v1/sessions/{session}/executions", body)
    assert await node.store.read(one(Statement("test", "SELECT 1 FROM parcels"))) == []


@pytest.mark.parametrize("field", ["item", "attempt"])
async def test_absurd_numbers_in_steps_are_refused(field: str, worker: Api):
    session = (await register(worker)).session_id
    for absurd in ABSURD:
        step = {**ITEM, "name": "s", "result": 1, field: absurd}
        await refused(worker, f"/api/v1/sessions/{session}/steps", {"steps": [step]})


@pytest.mark.parametrize("field", ["protocol", "pid", "concurrency"])
async def test_absurd_numbers_in_a_registration_are_refused(field: str, worker: Api, api: Api):
    for absurd in ABSURD:
        await refused(worker, "/api/v1/sessions", presence(**{field: absurd}))
    assert (await api.get("/api/v1/workers")).json()["items"] == []


async def test_a_list_of_workers_with_many_queues_is_shortened(worker: Api, api: Api, node: ServerNode):
    for number in range(12):
        await register(worker, worker=f"w{number}", queues=[f"{'q' * 100}-{n}" for n in range(1000)])
        node.env.clock.advance(SECOND // 100)  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("horae.engine.fleet.workers.MOST_CHARACTERS", 1_000_000)
        listed = (await api.get("/api/v1/workers")).json()["items"]
    overview = (await api.get("/api/v1/overview")).json()

    assert [one["workerId"] for one in listed] == ["w11", "w10", "w9", "w8"]
    assert overview["workers"] == {"active": 12, "draining": 0, "lost": 0, "slots": 24, "busy": 0}


async def test_workers_are_listed_shown_and_drained(worker: Api, api: Api, node: ServerNode):
    session = (await register(worker, host="h1", labels={"gpu": "a100"}, functions=[{"name": "digest"}])).session_id

    (listed,) = (await api.get("/api/v1/workers")).json()["items"]
    assert listed == (await api.get("/api/v1/workers/w1")).json()
    assert listed == (await api.get(f"/api/v1/workers/{session}")).json()
    assert listed["status"] == "live"
    assert (listed["workerId"], listed["capacity"], listed["jobs"]) == ("w1", 2, ["digest"])

    drained = await api.post("/api/v1/workers/w1/drain")
    assert (drained.status_code, drained.json()["status"]) == (202, "draining")
    answer = await worker.post(f"/api/v1/sessions/{session}/exchange", content=exchange())
    assert msgspec.json.decode(answer.content, type=Answer).drain


async def test_live_workers_are_found_behind_any_number_of_sessions_that_ended(
    worker: Api, api: Api, node: ServerNode, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("horae.engine.fleet.workers.MOST", 2)
    await register(worker)
    for state in ("closed", "lost", "closed", "lost"):
        node.env.clock.advance(SECOND)  # type: ignore[attr-defined]
        gone = (await register(worker, worker=state)).session_id
        ended = node.store.mark_lost(gone, node.env.now()) if state == "lost" else node.store.close_session(gone)
        assert await ended

    assert [one["workerId"] for one in (await api.get("/api/v1/workers")).json()["items"]] == ["lost", "w1"]
    assert (await api.get("/api/v1/overview")).json()["workers"]["active"] == 1
    assert (await api.get("/api/v1/workers/w1")).json()["status"] == "live"
    assert (await api.get("/api/v1/workers/lost")).json()["status"] == "lost"
    assert (await api.get("/api/v1/workers/closed")).status_code == 404
    assert (await api.post("/api/v1/workers/w1/drain")).json()["status"] == "draining"


async def test_a_silent_worker_is_late(worker: Api, api: Api, node: ServerNode, clock):
    await register(worker)
    clock.advance(node.settings.heartbeat * 2)
    assert (await api.get("/api/v1/workers/w1")).json()["status"] == "late"


async def test_a_worker_that_left_is_not_listed(worker: Api, api: Api):
    session = (await register(worker)).session_id
    await worker.delete(f"/api/v1/sessions/{session}")
    assert (await api.get("/api/v1/workers")).json()["items"] == []
    assert (await api.get("/api/v1/workers/w1")).status_code == 404


async def test_a_name_with_markup_is_data(worker: Api, api: Api):
    name = "<script>alert(1)</script>"
    await register(worker, worker=name)
    answer = await api.get("/api/v1/workers")
    assert answer.json()["items"][0]["workerId"] == name
    assert answer.headers["content-type"] == "application/json"


async def test_queues_and_servers_are_listed(api: Api, node: ServerNode):
    (queue,) = (await api.get("/api/v1/queues")).json()["items"]
    assert (queue["name"], queue["queued"]) == ("default", 0)
    node.fleet.begin(ROLES, "http://127.0.0.1:1")
    await node.fleet.presence.step()
    (server,) = (await api.get("/api/v1/servers")).json()["items"]
    assert UUID(server["serverId"]) == node.id
    assert server["roles"] == ["api", "gateway", "scheduler"]


async def test_servers_of_all_parts_are_listed_and_workers_learn_of_their_gateways(api: Api, node: ServerNode):
    alone = ServerNode(node.env, node.store)
    alone.fleet.begin({"scheduler"}, "http://127.0.0.1:2")
    await alone.fleet.presence.step()
    node.fleet.begin(ROLES, "")
    await node.fleet.presence.step()

    listed = (await api.get("/api/v1/servers")).json()["items"]
    assert sorted((one["url"], one["roles"]) for one in listed) == [
        ("", ["api", "gateway", "scheduler"]),
        ("http://127.0.0.1:2", ["scheduler"]),
    ]
    assert node.fleet.answers.servers == []


@pytest.mark.parametrize("part", sorted(ROLES))
def test_a_server_of_any_part_is_listed(node: ServerNode, part: str):
    assert node.fleet.presence in node.services({part})


async def test_metrics_report_requests_and_workers(worker: Api, api: Api):
    await register(worker)
    text = (await api.get("/metrics")).text
    assert 'horae_workers{namespace="default",status="live"} 1.0' in text
    assert 'horae_http_requests_total{route="sessions.register",status="201"} 1.0' in text
    assert "horae_ready 1.0" in text


async def test_metrics_alarm_when_the_clock_is_not_trusted(api: Api, node: ServerNode):
    assert "horae_clock_trusted 1.0" in (await api.get("/metrics")).text
    node.base.clock.trusted = False
    assert "horae_clock_trusted 0.0" in (await api.get("/metrics")).text


async def test_readiness_reports_a_clock_that_jumped(api: Api, node: ServerNode):
    assert (await api.get("/readyz")).json()["note"] is None
    node.base.clock.trusted, node.base.clock.jump = False, -600 * SECOND
    answer = await api.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "ready")
    assert "the store's clock jumped by -600 s" in answer.json()["note"]


async def test_metrics_report_triggers_that_cannot_be_decided(api: Api, node: ServerNode):
    body = {"name": "report", "command": ["true"], "schedule": "0 0 1 1 *"}
    assert (await api.post("/api/v1/jobs", json=body)).status_code == 201
    assert "horae_failing_triggers 0.0" in (await api.get("/metrics")).text
    await node.store.write(one(Statement("test", "UPDATE timers SET trouble = 'Mars'")))
    assert "horae_failing_triggers 1.0" in (await api.get("/metrics")).text


async def test_a_worker_key_has_only_its_roles_permissions(node: ServerNode, connect: Connect):
    worker = connect(authorization=f"Bearer {await key_for(node, 'worker')}")
    assert (await worker.get("/api/v1/me")).json()["role"] == "worker"


async def test_the_store_is_audited_and_repaired(api: Api):
    report = (await api.get("/api/v1/audit/executions")).json()
    assert report["findings"] == []
    assert (await api.post("/api/v1/audit/executions")).json()["repaired"] is None


async def test_a_repair_reports_its_changes_and_the_remaining_problems(api: Api, node: ServerNode):
    await create(api)
    made = (await api.post("/api/v1/jobs/report/trigger")).json()["executionId"]
    await node.store.driver.write(one(Statement("lose", "DELETE FROM queued")))

    found = (await api.get("/api/v1/audit/executions")).json()
    repaired = (await api.post("/api/v1/audit/executions")).json()

    assert (found["findingsByKind"], found["repaired"]) == ({"missing": 1}, None)
    assert (repaired["repaired"]["requeued"], repaired["findings"]) == (1, [])
    assert (await api.get(f"/api/v1/executions/{made}")).json()["status"] in ("waiting", "queued")


async def test_a_clock_that_jumped_is_accepted(api: Api, node: ServerNode):
    node.base.clock.trusted, node.base.clock.jump = False, -600_000_000
    told = (await api.get("/api/v1/clock")).json()
    assert (told["trusted"], told["jumpSeconds"]) == (False, -600.0)
    assert (await api.post("/api/v1/clock/accept")).json()["trusted"] is True


@pytest.mark.parametrize(
    "error",
    [
        {"type": "x" * 513},
        {"type": "T", "message": "x" * 16_385},
        {"type": "T", "traceback": "x" * 65_537},
        {"type": "T", "names": ["x"] * 101},
        {"type": "T", "names": ["x" * 513]},
    ],
    ids=lambda error: next(reversed(error)),
)
async def test_an_error_without_bound_is_refused(error: dict[str, object], worker: Api):
    session = (await register(worker)).session_id
    outcome = {**SPAN, "outcome": "failed", "error": error}
    await refused(worker, f"/api/v1/sessions/{session}/exchange", {"channel": 0, "n": 1, "outcomes": [outcome]})
