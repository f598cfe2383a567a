"""Bodies of workers: misspelt fields, faulty outcomes, wrong numbers, unknown names and streams."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from horae.engine.server_node import ServerNode
from horae.model.fleet.protocol import MAX_PROGRESS, Exchange
from horae.server.reading.worker_bodies import _closed_decoder
from horae.store.driver import one
from horae.store.script import Statement
from tests.server.conftest import Api
from tests.server.test_jobs import create
from tests.server.working import HandWorker

Tell = Callable[..., Awaitable[Any]]
NOBODY = "0198c5a0-0000-7000-8000-000000000000"
SPAN = {"parcel": NOBODY, "lo": 0, "hi": 1, "attempt": 1, "outcome": "success"}
ITEM = {"parcel": NOBODY, "item": 0, "attempt": 1}
STRICT = {"horae-strict": "1"}


@pytest.fixture
async def tell(worker: Api) -> Tell:
    """Send a body to a route of a new session."""
    session = (await HandWorker.register(worker)).session

    async def tell(route: str, body: Any, **headers: str) -> Any:
        how = {"content": body} if isinstance(body, bytes) else {"json": body}
        return await worker.post(f"/api/v1/sessions/{session}/{route}", headers=headers, **how)

    return tell


def exchange(*outcomes: Any, **more: Any) -> dict[str, Any]:
    return {"channel": 0, "n": 1, "outcomes": list(outcomes), **more}


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ({"result": [1]}, "results"), ({"resutls": [1]}, "results"), ({"Results": [1]}, "results"),
        ({"output": 1}, "results"), ({"exit_code": 1}, "exitCode"), ({"wake_at": 1}, "wakeAt"),
        ({"ended_at": [1]}, "endedAt"), ({"errors": {"type": "E"}}, "error"), ({"res": [1]}, "results"),
        ({"Output": [1]}, "results"), ({"payload": [1]}, "results"), ({"return_value": [1]}, "results"),
        ({"response": [1]}, "results"), ({"err": {"type": "E"}}, "error"), ({"exit": 1}, "exitCode"),
    ],
)  # fmt: skip
async def test_a_misspelt_field_of_an_outcome_is_refused_with_a_suggestion(tell: Tell, wrong, meant):
    answer = await tell("exchange", exchange(SPAN, {**SPAN, **wrong}))

    problem = answer.json()
    assert (answer.status_code, problem["type"], problem["index"]) == (400, "urn:horae:outcome-refused", 1)
    assert problem["field"] == f"outcomes[1].{next(iter(wrong))}"
    assert problem["remedy"] == f"Did you mean {meant}?"
    assert (
        await tell("exchange", exchange(SPAN))
    ).status_code == 200  # under the same number: the former one had no effect


async def test_a_misspelt_field_inside_an_error_is_refused(tell: Tell):
    failed = {**SPAN, "outcome": "failed", "error": {"type": "E", "retry_after": 1}}
    assert (await tell("exchange", exchange(failed))).json()["field"] == "outcomes[0].error.retry_after"


@pytest.mark.parametrize(
    ("route", "body", "field"),
    [
        ("exchange", exchange(wiat=5), "wiat"),
        ("exchange", exchange(logs=[{**ITEM, "seq": 0, "line": [], "lines": []}]), "logs[0].line"),
        ("steps", {"steps": [{**ITEM, "name": "a", "results": 1}]}, "steps[0].results"),
        ("awaits", {**ITEM, "step": "a", "signal": "s", "timeOut": 1}, "timeOut"),
        ("executions", {**ITEM, "call": "1", "submissions": [{"job": "a", "param": {}}]}, "submissions[0].param"),
    ],
)
async def test_a_misspelt_field_is_refused_on_every_route_of_a_session(tell: Tell, route, body, field):
    answer = await tell(route, body)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert answer.json()["remedy"].startswith("Did you mean ")


async def test_a_misspelt_registration_is_refused(worker: Api):
    body = {"protocol": 2, "worker": "w", "concurency": 8}
    answer = await worker.post("/api/v1/sessions", json=body)
    assert (answer.status_code, answer.json()["remedy"]) == (400, "Did you mean concurrency?")


async def test_a_field_of_a_newer_worker_is_ignored_unless_the_worker_is_strict(tell: Tell):
    body = exchange({**SPAN, "gpuHours": 3}, weather="fair")

    strict = await tell("exchange", body, **STRICT)
    assert (strict.status_code, strict.json()["type"]) == (400, "urn:horae:outcome-refused")
    alone = await tell("exchange", exchange(SPAN, weather="fair"), **STRICT)
    assert (alone.status_code, alone.json()["field"]) == (400, "weather")
    assert (await tell("exchange", body)).status_code == 200


async def test_params_and_results_may_have_any_fields(tell: Tell):
    body = exchange({**SPAN, "results": [{"result": 1, "outcome": 2}]})
    assert (await tell("exchange", body, **STRICT)).status_code == 200


def test_strict_and_plain_decoding_agree():
    body = b'{"channel": 0, "n": 1, "outcomes": [], "prefetch": {"%s": 3}}' % NOBODY.encode()
    found = _closed_decoder(Exchange).decode(body)
    assert isinstance(found, Exchange)
    assert (found.n, found.free, found.wait, list(found.prefetch.values())) == (1, 0, 0, [3])


DEEP = "[" * 3000 + "]" * 3000


@pytest.mark.parametrize(
    "results",
    [f"[{DEEP}]", '["\\ud800"]', "[1, 2]", "7"],
    ids=["deep", "surrogate", "two for one", "no list"],
)
async def test_the_faulty_outcome_is_named_by_its_index(tell: Tell, results: str):
    whole = (
        '{"note": "outcomes", "channel": 0, "n": 1, "outcomes": ['
        f'{_text(1)}, {_text(2, results)}, {_text(3, results)}], "logs": []}}'
    )
    answer = await tell("exchange", whole.encode())
    problem = answer.json()
    assert (answer.status_code, problem["type"], problem["index"]) == (400, "urn:horae:outcome-refused", 1)
    assert problem["field"].startswith("outcomes[1]")


@pytest.mark.parametrize(("levels", "status"), [(500, 200), (501, 400)])
async def test_a_result_may_have_the_documented_number_of_levels(tell: Tell, levels, status):
    deep = '{"a": ' * (levels - 1) + '["[[["]' + "}" * (levels - 1)
    outcomes = f"{_text(1)}, {_text(2, f'[{deep}]')}"
    answer = await tell("exchange", f'{{"channel": 0, "n": 1, "outcomes": [{outcomes}]}}'.encode())
    assert (answer.status_code, answer.json().get("index")) == (status, 1 if status == 400 else None)

    step = json.dumps({"steps": [{**ITEM, "name": "a", "result": 0}]}).replace('"result": 0', f'"result": {deep}')
    assert (await tell("steps", step.encode())).status_code == status


def _text(attempt: int, results: str = '[{"a": "}]", "b": "\\\\"}]') -> str:
    span = f'"parcel": "{NOBODY}", "lo": 0, "hi": 1, "attempt": {attempt}'
    return f'{{{span}, "outcome": "success", "results": {results}}}'


async def test_a_body_that_is_wrong_elsewhere_blames_no_outcome(tell: Tell):
    answer = await tell("exchange", exchange(SPAN, free=-1))
    assert (answer.json()["type"], answer.json()["field"]) == ("urn:horae:bad-input", "free")


async def test_a_wrong_exchange_number_differs_from_a_wrong_body(tell: Tell):
    answer = await tell("exchange", {"channel": 0, "n": 5})
    problem = answer.json()
    assert (answer.status_code, problem["type"]) == (400, "urn:horae:exchange-number")
    assert (problem["field"], problem["expected"]) == ("n", 1)


async def test_a_worker_cannot_report_itself_as_lost(tell: Tell):
    failed = {**SPAN, "outcome": "failed", "error": {"type": "E", "kind": "lost"}}
    answer = await tell("exchange", exchange(failed))
    assert (answer.status_code, answer.json()["field"]) == (400, "outcomes[0].error.kind")
    assert answer.json()["remedy"] == "Choose one of: error, platform, timeout."


@pytest.mark.parametrize("part", ["lines", "open"])
async def test_a_line_of_an_unknown_stream_is_refused(tell: Tell, part: str):
    log = {**ITEM, "seq": 0, "lines": [], part: [[1_800_000_000_000_000, "bogus", "a"]]}
    assert (await tell("exchange", exchange(logs=[log]))).status_code == 400


@pytest.mark.parametrize("name", ["@foo", "@", "@sleep:1", "@sleep#1", "@sleep#02", "@wait:", "@checkpoint2", "@began"])
async def test_names_that_begin_with_an_at_sign_are_reserved(tell: Tell, name: str):
    for route, body in (
        ("steps", {"steps": [{**ITEM, "name": name}]}),
        ("awaits", {**ITEM, "step": name, "signal": "s"}),
    ):
        answer = await tell(route, body)
        assert (answer.status_code, "@wait:SIGNAL" in answer.json()["remedy"]) == (400, True)


@pytest.mark.parametrize("name", ["@checkpoint", "@sleep", "@sleep#12", "@wait:approved", "a@b"])
async def test_the_reserved_steps_of_workers_are_accepted(tell: Tell, name: str):
    assert (await tell("steps", {"steps": [{**ITEM, "name": name}]})).json() == {"steps": [{"refused": True}]}


async def test_a_token_is_text_too(api: Api, worker: Api, node: ServerNode):
    await node.store.write(one(Statement("restored", "UPDATE store SET value = '27613522' WHERE key = 'epoch'")))
    await create(api)
    await api.post("/api/v1/jobs/report/trigger")
    by_hand = await HandWorker.register(worker)
    (grant,) = (await by_hand.send(free=1)).json()["slices"]
    assert (grant["token"], grant["tokenText"]) == (118599173917376513, "118599173917376513")


async def running(api: Api, worker: Api, **job: Any) -> tuple[HandWorker, dict[str, Any]]:
    """Return a running execution, and its worker."""
    await create(api, **job)
    await api.post("/api/v1/jobs/report/trigger")
    by_hand = await HandWorker.register(worker, functions=[{"name": "f"}])
    (grant,) = await by_hand.take(1)
    return by_hand, {"parcel": str(grant.parcel), "item": 0, "attempt": 1}


async def test_a_call_that_names_other_jobs_is_refused_and_submits_nothing(api: Api, worker: Api):
    by_hand, place = await running(api, worker)
    await create(api, name="other")
    path = f"/api/v1/sessions/{by_hand.session}/executions"

    first = await worker.post(path, json={**place, "call": "1", "submissions": [{"job": "report"}]})
    again = await worker.post(path, json={**place, "call": "1", "submissions": [{"job": "report", "params": {"a": 1}}]})
    for jobs in ([{"job": "other"}], [{"job": "report"}, {"job": "other"}]):
        other = await worker.post(path, json={**place, "call": "1", "submissions": jobs})
        assert (other.status_code, other.json().get("field")) == (422, "call")

    ids = [one["executionId"] for answer in (first, again) for one in answer.json()["items"]]
    assert len(set(ids)) == 1
    assert (await api.get("/api/v1/executions?job=other")).json()["items"] == []


@pytest.mark.parametrize(("durable", "status"), [(True, "running"), (False, "failed")])
async def test_only_a_durable_job_is_suspended(api: Api, worker: Api, durable: bool, status: str):
    job = {"command": None, "python": "f", "retries": 3, **({"durable": True} if durable else {})}
    by_hand, place = await running(api, worker, **job)
    told = {"parcel": place["parcel"], "lo": 0, "hi": 1, "attempt": 1, "outcome": "suspended"}
    body = {"channel": 0, "n": 2, "outcomes": [{**told, "wakeAt": 7_000_000_000_000_000}]}
    assert (await worker.post(f"/api/v1/sessions/{by_hand.session}/exchange", json=body)).status_code == 200

    (found,) = (await api.get("/api/v1/executions")).json()["items"]
    assert found["status"] == status
    if not durable:
        assert found["error"]["type"] == "NotDurable"


async def test_a_progress_message_is_cut(api: Api, worker: Api):
    by_hand, place = await running(api, worker)
    told = await by_hand.send(progress=[{**place, "percent": 5, "message": "p" * 100_000}])
    assert told.status_code == 200
    (found,) = (await api.get("/api/v1/executions")).json()["items"]
    assert found["message"] == "p" * MAX_PROGRESS
