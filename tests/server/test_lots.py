"""Bulk submissions of one job: the answer has each item, and refused items have a reason."""

from uuid import UUID

import pytest

from horae.engine.server_node import ServerNode
from horae.errors import BadInput
from horae.model.base.ids import execution_id
from horae.model.executions.submission import Receipt
from horae.server.problems import problem_document
from horae.server.reply import encode
from horae.server.routes.executions.submission import BulkItem, BulkReceipt, encoded_bulk_answer
from horae.store.executions.entering.submit import JobMoved
from tests.server.conftest import Api

EXECUTIONS = "/api/v1/executions"
SCHEMA = {"type": "object", "properties": {"i": {"type": "integer"}, "j": {}}, "required": ["i"]}
STRICT = {"properties": {"i": {"type": "integer", "maximum": 2}}}


async def create(api: Api, **more) -> None:
    answer = await api.post("/api/v1/jobs", json={"name": "report", "command": "true", **more})
    assert answer.status_code == 201


def test_the_answer_is_encoded_as_documented():
    parcel, error = UUID("0198c5a0-0000-7000-8000-00000abc0000"), BadInput("no", "try", field="params.i")
    receipts = [Receipt(execution_id(parcel, 9), state="waiting", count=2), Receipt(execution_id(parcel, 0xFFF))]
    whole = BulkReceipt(
        items=[
            BulkItem(execution_id=execution_id(parcel, 9), status="waiting", deduplicated=False),
            BulkItem(error=problem_document(error)),
            BulkItem(execution_id=execution_id(parcel, 10), status="waiting", deduplicated=False),
            BulkItem(execution_id=execution_id(parcel, 0xFFF), status="queued", deduplicated=False),
            BulkItem(error=problem_document(error)),
        ],
        accepted=3,
        refused=2,
    )

    assert encoded_bulk_answer(receipts, {4: error, 1: error}, []) == encode(whole)


async def test_items_that_do_not_fit_the_schema_are_refused_alone(api: Api):
    await create(api, schema=SCHEMA, params={"j": 1})
    items = [{"i": 0}, {"i": "x"}, {"i": 2}, {}, {"i": 4}]

    answer = await api.post(EXECUTIONS, json={"job": "report", "items": items})

    body = answer.json()
    assert (answer.status_code, body["accepted"], body["refused"]) == (207, 3, 2)
    assert [item.get("error", {}).get("field") for item in body["items"]] == [None, "params.i", None, "params", None]
    kept = [item["executionId"] for item in body["items"] if "executionId" in item]
    assert [(await api.get(f"{EXECUTIONS}/{id}")).json()["params"] for id in kept] == [{"i": 0}, {"i": 2}, {"i": 4}]


async def test_all_or_nothing_names_the_first_faulty_item(api: Api):
    await create(api, schema=SCHEMA)

    answer = await api.post(EXECUTIONS, json={"job": "report", "items": [{"i": 1}, {}, 7], "atomic": True})

    assert (answer.status_code, answer.json()["index"]) == (400, 1)
    assert (await api.get(EXECUTIONS)).json()["items"] == []


@pytest.mark.parametrize(
    ("item", "field"),
    [
        (b"[1]", "params"),
        (b'"text"', "params"),
        (b'{"a":' * 70 + b"1" + b"}" * 70, "params"),
        (b'{"a": "' + b"x" * 1024 * 1024 + b'"}', None),
    ],
)
async def test_an_item_that_is_not_an_object_or_too_large_is_refused_alone(api: Api, item: bytes, field: str | None):
    await create(api)
    body = b'{"job": "report", "items": [{"i": 1}, %s, null, {}]}' % item

    answer = await api.post(EXECUTIONS, content=body, headers={"content-type": "application/json"})

    items = answer.json()["items"]
    assert (answer.status_code, answer.json()["accepted"]) == (207, 3)
    assert items[1]["error"].get("field") == field
    assert (await api.get(f"{EXECUTIONS}/{items[3]['executionId']}")).json()["params"] == {}


async def test_no_item_of_a_refused_bulk_submission_is_stored(api: Api):
    await create(api, schema=SCHEMA)

    all_wrong = await api.post(EXECUTIONS, json={"job": "report", "items": [{}, {}]})
    unknown = await api.post(EXECUTIONS, json={"job": "nothing", "items": [{"i": 1}]})
    too_urgent = await api.post(EXECUTIONS, json={"job": "report", "items": [{"i": 1}], "priority": 11})

    assert (all_wrong.status_code, all_wrong.json()["refused"]) == (207, 2)
    assert (unknown.status_code, too_urgent.status_code) == (404, 400)
    assert (await api.get(EXECUTIONS)).json()["items"] == []


async def test_a_repeated_bulk_submission_returns_the_same_executions(api: Api):
    await create(api)
    body = {"job": "report", "items": [{"i": n} for n in range(1500)]}

    first = await api.post(EXECUTIONS, json=body, headers={"idempotency-key": "once"})
    again = await api.post(EXECUTIONS, json=body, headers={"idempotency-key": "once"})

    assert first.json() == again.json()
    assert len({item["executionId"] for item in first.json()["items"]}) == 1500
    counted = (await api.get(f"{EXECUTIONS}/counts")).json()
    assert counted["queued"] == 1500


@pytest.mark.parametrize("job", [{}, {"unique": {"key": "${params.i}"}}], ids=["lot", "each"])
async def test_items_that_look_like_submissions_are_refused_with_the_right_form(api: Api, job: dict):
    await create(api, **job)
    items = [
        {"i": 1}, {"params": {"i": 1}, "tags": {"a": "b"}}, {"params": {"i": 3}}, {"params": {}, "job": "report"},
        {"params": {"i": 4}, "prioriti": 3}, {"job": "report", "key": "k"},
    ]  # fmt: skip

    answer = await api.post(EXECUTIONS, json={"job": "report", "items": items})
    whole = await api.post(EXECUTIONS, json={"job": "report", "items": items, "atomic": True})

    told = [item.get("error", {}) for item in answer.json()["items"]]
    assert (answer.status_code, [error.get("field") for error in told]) == (207, [None, *["items"] * 5])
    assert '{"items": [{"job": "report", "params": {...}}]}' in told[1]["remedy"]
    assert (whole.status_code, whole.json()["index"]) == (400, 1)


async def test_items_with_their_own_options_may_have_any_params(api: Api):
    await create(api)
    answer = await api.post(EXECUTIONS, json={"items": [{"job": "report", "params": {"params": {"i": 1}}}]})
    assert answer.status_code == 201


@pytest.mark.parametrize(
    ("job", "item"),
    [
        ({"schema": {"type": "object", "properties": {"params": {"type": "object"}}}}, {"params": {"i": 1}}),
        ({"params": {"params": {}}}, {"params": {"i": 1}, "key": "a"}),
        ({}, {"params": {"i": 1}, "model": "large"}),
        ({}, {"params": 7}),
        ({}, {"key": "a", "tags": {}}),
        ({}, {"key": "a", "job": "another"}),
        ({}, {"job": "report", "model": "large"}),
        ({"params": {"job": ""}}, {"job": "report"}),
    ],
)
async def test_params_may_be_called_like_fields_of_a_submission(api: Api, job: dict, item: dict):
    await create(api, **job)
    answer = await api.post(EXECUTIONS, json={"job": "report", "items": [item]})
    assert answer.status_code == 201, answer.text


def bulk(form: str, *items: dict) -> dict:
    if form == "each":
        return {"items": [{"job": "report", "params": item} for item in items]}
    return {"job": "report", "items": items, "atomic": form == "atomic"}


@pytest.mark.parametrize("form", ["common", "each", "atomic"])
@pytest.mark.parametrize("change", [STRICT, {"required": ["i", "j"]}, None], ids=["some", "all", "deleted"])
async def test_a_repeated_bulk_submission_is_answered_alike_though_it_would_be_refused_now(
    api: Api, form: str, change: dict | None
):
    await create(api, schema=SCHEMA)
    body, key = bulk(form, {"i": 1}, {"i": 2}, {"i": 3}), {"Idempotency-Key": "k1"}
    first = await api.post(EXECUTIONS, json=body, headers=key)
    assert first.status_code == 201, first.text
    if change is None:
        assert (await api.delete("/api/v1/jobs/report")).status_code == 200
    else:
        assert (await api.patch("/api/v1/jobs/report", json={"schema": {**SCHEMA, **change}})).status_code == 200

    again = await api.post(EXECUTIONS, json=body, headers=key)
    ids = [item["executionId"] for item in first.json()["items"]]
    assert (again.status_code, again.json().get("refused")) == (201, 0), again.text
    assert [item["executionId"] for item in again.json()["items"]] == ids


@pytest.mark.parametrize("form", ["common", "each"])
async def test_a_repeated_bulk_submission_of_which_other_items_were_refused_is_a_conflict(api: Api, form: str):
    await create(api, schema={**SCHEMA, **STRICT})
    body, key = bulk(form, {"i": 3}, {"i": 1}, {"i": 2}), {"Idempotency-Key": "k1"}
    first = await api.post(EXECUTIONS, json=body, headers=key)
    assert (first.status_code, first.json()["refused"]) == (207, 1)
    assert (await api.post(EXECUTIONS, json=body, headers=key)).json()["refused"] == 1
    await api.patch("/api/v1/jobs/report", json={"schema": SCHEMA})

    again = await api.post(EXECUTIONS, json=body, headers=key)
    assert (again.status_code, again.json()["remedy"]) == (409, "Use a new key.")


@pytest.mark.parametrize("form", ["common", "each"])
async def test_items_are_checked_again_when_the_job_is_changed_meanwhile(
    api: Api, node: ServerNode, monkeypatch: pytest.MonkeyPatch, form: str
):
    await create(api, schema=SCHEMA)
    job = UUID((await api.get("/api/v1/jobs/report")).json()["jobId"])
    store, changed = node.store.submit, []

    async def submit(*given: object):
        if not changed:
            changed.append(await api.patch("/api/v1/jobs/report", json={"schema": {**SCHEMA, **STRICT}}))
            raise JobMoved({job})
        return await store(*given)

    monkeypatch.setattr(node.store, "submit", submit)
    answer = await api.post(EXECUTIONS, json=bulk(form, {"i": "x"}, {"i": 3}, {"i": 1}))

    assert (answer.status_code, changed[0].status_code) == (207, 200), answer.text
    assert ["error" in item for item in answer.json()["items"]] == [True, True, False]
