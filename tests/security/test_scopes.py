"""Keys for some queues and jobs only: denied by default, and without a bypass."""

from collections.abc import AsyncIterator

import pytest

from horae.model.fleet.protocol import PROTOCOL
from horae.server.routes.table import ROUTES
from horae.server.scopes import closed
from tests.security.people import Api, People, done, opened
from tests.server.test_access import path_of

JOBS, EXECUTIONS, SESSIONS = "/api/v1/jobs", "/api/v1/executions", "/api/v1/sessions"
HTTP = {"http": "https://a.example"}
ETL = ["etl-*"]


@pytest.fixture
async def people() -> AsyncIterator[People]:
    async with opened() as people:
        admin = await people.a("admin")
        await done(admin.post(JOBS, json={"name": "etl-load", "queue": "etl", **HTTP}))
        await done(admin.post(JOBS, json={"name": "etl-slow", "queue": "slow", **HTTP}))
        await done(admin.post(JOBS, json={"name": "payroll", "queue": "etl", **HTTP}))
        yield people


async def submitted(people: People, job: str) -> str:
    made = await done((await people.a("operator")).post(EXECUTIONS, json={"job": job}))
    return str(made["executionId"])


async def status(answer: object) -> int:
    return int((await answer).status_code)  # type: ignore[misc]


def test_public_routes_have_no_scope():
    assert [route.name for route in ROUTES if route.is_public and route.scope is not closed] == []


async def test_closed_routes_refuse_keys_with_a_scope(people: People):
    scoped = await people.a("admin", jobs=ETL)
    for route in ROUTES:
        if route.scope is not closed or route.is_public or route.access.permission:
            continue
        answer = await scoped.request(route.method, path_of(route), json={} if route.method != "GET" else None)
        assert answer.status_code in (400, 403, 422), (route.name, answer.text)
        if answer.status_code == 403:
            assert "without a scope" in answer.json()["remedy"], route.name


async def test_a_key_for_some_jobs_reaches_only_these(people: People):
    scoped = await people.a("operator", jobs=ETL)
    own, other = await submitted(people, "etl-load"), await submitted(people, "payroll")

    assert await status(scoped.post(EXECUTIONS, json={"job": "etl-load"})) == 201
    assert await status(scoped.post(f"{JOBS}/etl-slow/trigger", json={})) == 202
    assert await status(scoped.get(f"{EXECUTIONS}/{own}/logs")) == 200
    assert await status(scoped.get(f"{EXECUTIONS}?job=etl-load")) == 200
    assert await status(scoped.post(f"{EXECUTIONS}/{own}/cancel", json={})) == 200

    assert await status(scoped.post(EXECUTIONS, json={"job": "payroll"})) == 403
    assert await status(scoped.post(f"{JOBS}/payroll/trigger", json={})) == 403
    assert await status(scoped.get(f"{JOBS}/payroll")) == 403
    assert await status(scoped.get(f"{EXECUTIONS}/{other}")) == 403
    assert await status(scoped.get(f"{EXECUTIONS}/{other}/artifacts/a/b")) == 403
    assert await status(scoped.post(f"{EXECUTIONS}/{other}/cancel", json={})) == 403
    assert await status(scoped.get(EXECUTIONS)) == 403
    assert await status(scoped.get(f"{EXECUTIONS}?job=payroll")) == 403
    assert await status(scoped.get("/api/v1/stream")) == 403
    assert await status(scoped.get(f"/api/v1/stream?execution={other}")) == 403


async def test_an_id_instead_of_a_name_does_not_help(people: People):
    scoped = await people.a("operator", jobs=ETL)
    id = (await done((await people.a("viewer")).get(f"{JOBS}/payroll")))["jobId"]
    assert await status(scoped.post(f"{JOBS}/{id}/trigger", json={})) == 403
    assert await status(scoped.post(EXECUTIONS, json={"job": id})) == 403


async def test_one_item_outside_the_scope_refuses_the_whole_request(people: People):
    scoped = await people.a("operator", jobs=ETL)
    admin = await people.a("admin")
    before = await done(admin.get(f"{EXECUTIONS}/counts"))

    many = {"items": [{"job": "etl-load"}, {"job": "payroll"}]}
    assert await status(scoped.post(EXECUTIONS, json=many)) == 403
    assert await status(scoped.post(EXECUTIONS, json={"job": "payroll", "items": [{}, {}]})) == 403

    assert await done(admin.get(f"{EXECUTIONS}/counts")) == before


async def test_lists_contain_only_jobs_within_the_scope(people: People):
    async def names(who: Api) -> list[str]:
        return [job["name"] for job in (await done(who.get(JOBS)))["items"]]

    assert await names(await people.a("viewer", jobs=ETL)) == ["etl-load", "etl-slow"]
    assert await names(await people.a("viewer", queues=["etl"])) == ["etl-load", "payroll"]
    assert await names(await people.a("viewer", queues=["etl"], jobs=ETL)) == ["etl-load"]


async def test_a_key_for_a_queue_reaches_the_queue_and_its_jobs(people: People):
    scoped = await people.a("operator", queues=["etl"])
    assert await status(scoped.post("/api/v1/queues/etl/pause", json={})) == 200
    assert await status(scoped.get(f"{EXECUTIONS}?queue=etl")) == 200
    assert await status(scoped.post(EXECUTIONS, json={"job": "payroll"})) == 201

    assert await status(scoped.post("/api/v1/queues/slow/pause", json={})) == 403
    assert await status(scoped.get(f"{EXECUTIONS}?queue=slow")) == 403
    assert await status(scoped.post(EXECUTIONS, json={"job": "etl-slow"})) == 403


async def test_a_key_for_some_jobs_cannot_hold_their_queue(people: People):
    scoped = await people.a("operator", queues=["etl"], jobs=ETL)
    assert await status(scoped.post("/api/v1/queues/etl/pause", json={})) == 403
    assert await status(scoped.get(f"{EXECUTIONS}?queue=etl")) == 403


async def test_an_editors_definitions_stay_within_the_scope(people: People):
    scoped = await people.a("editor", jobs=ETL, queues=["etl"])
    assert await status(scoped.post(JOBS, json={"name": "etl-new", "queue": "etl", **HTTP})) == 201
    assert await status(scoped.patch(f"{JOBS}/etl-new", json={"priority": 3})) == 200

    assert await status(scoped.post(JOBS, json={"name": "new", "queue": "etl", **HTTP})) == 403
    assert await status(scoped.post(JOBS, json={"name": "etl-other", "queue": "slow", **HTTP})) == 403
    assert await status(scoped.patch(f"{JOBS}/etl-new", json={"queue": "slow"})) == 403
    assert await status(scoped.patch(f"{JOBS}/etl-new", json={"name": "new"})) == 403
    assert await status(scoped.patch(f"{JOBS}/payroll", json={"priority": 3})) == 403
    assert await status(scoped.delete(f"{JOBS}/payroll")) == 403


async def test_a_workflow_within_the_scope_cannot_run_jobs_outside(people: People):
    scoped = await people.a("editor", jobs=ETL)

    def flow(**step: object) -> dict[str, object]:
        return {"name": "etl-flow", "workflow": {"steps": [{"name": "a", **step}]}}

    assert await status(scoped.post(JOBS, json=flow(job="payroll"))) == 403
    assert await status(scoped.post(JOBS, json=flow(job="payroll", priority=9))) == 403
    assert await status(scoped.post(JOBS, json=flow(job="etl-load", undo={"job": "payroll"}))) == 403
    assert await status(scoped.post(JOBS, json=flow(job="etl-load"))) == 201


@pytest.mark.parametrize("scope", [{"jobs": ETL}, {"jobs": ETL, "queues": ["etl"]}], ids=["jobs", "queues"])
async def test_a_job_within_the_scope_cannot_depend_on_jobs_outside(people: People, scope: dict[str, list[str]]):
    scoped, admin = await people.a("editor", **scope), await people.a("admin")
    payroll = (await done(admin.get(f"{JOBS}/payroll")))["jobId"]
    job = {"name": "etl-new", "queue": "etl", **HTTP}

    for ref in ("payroll", payroll, {"job": "payroll", "condition": "failure"}):
        answer = await scoped.post(JOBS, json={**job, "dependencies": [ref]})
        assert answer.status_code == 403, answer.text
    assert await status(scoped.post(JOBS, json={**job, "dependencies": ["etl-load"]})) == 201
    assert await status(scoped.patch(f"{JOBS}/etl-new", json={"dependencies": ["payroll"]})) == 403
    assert await status(scoped.put(f"{JOBS}/etl-new", json={**job, "dependencies": ["payroll"]})) == 403
    await done(admin.patch(f"{JOBS}/etl-new", json={"dependencies": ["payroll"]}))
    assert await status(scoped.patch(f"{JOBS}/etl-new", json={"priority": 3})) == 200  # what was there may stay


async def test_a_key_for_a_queue_cannot_depend_on_jobs_of_another_queue(people: People):
    scoped = await people.a("editor", queues=["etl"])
    job = {"name": "new", "queue": "etl", **HTTP}

    assert await status(scoped.post(JOBS, json={**job, "dependencies": ["etl-slow"]})) == 403
    assert await status(scoped.post(JOBS, json={**job, "dependencies": ["payroll"]})) == 201


async def test_refusals_do_not_reveal_jobs_outside_the_scope(people: People):
    scoped = await people.a("editor", jobs=ETL)

    def with_name(name: str) -> list[tuple[str, str, dict[str, object] | None]]:
        new = {"name": "etl-new", **HTTP}
        return [
            ("GET", f"{JOBS}/{name}", None),
            ("PATCH", f"{JOBS}/{name}", {"priority": 3}),
            ("POST", f"{JOBS}/{name}/restore", {}),
            ("POST", f"{JOBS}/{name}/trigger", {}),
            ("GET", f"{EXECUTIONS}?job={name}", None),
            ("POST", EXECUTIONS, {"job": name}),
            ("POST", JOBS, {**new, "dependencies": [name]}),
            ("POST", JOBS, {"name": "etl-new", "workflow": {"steps": [{"name": "a", "job": name}]}}),
        ]

    for there, not_there in zip(with_name("payroll"), with_name("pbyroll"), strict=True):
        same = {"x-request-id": "same"}
        told = [await scoped.request(*one[:2], json=one[2], headers=same) for one in (there, not_there)]
        assert [one.status_code for one in told] == [403, 403], there
        assert told[0].text == told[1].text.replace("pbyroll", "payroll")


async def test_answers_name_no_jobs_outside_the_scope(people: People):
    admin = await people.a("admin")
    payroll = (await done(admin.get(f"{JOBS}/payroll")))["jobId"]
    execution = await submitted(people, "payroll")
    for name in ("etl-after", "payroll-after"):
        await done(admin.post(JOBS, json={"name": name, "dependencies": ["etl-load"], **HTTP}))
    scoped, of_queue = await people.a("editor", jobs=ETL), await people.a("editor", queues=["slow"])

    triggered = await done(scoped.post(f"{JOBS}/etl-load/trigger", json={}))
    assert triggered["fires"] == ["etl-after"]
    answers = [
        await scoped.post(f"{JOBS}/etl-load/trigger", json={}),
        await scoped.get(f"{JOBS}/{payroll}"),
        await scoped.get(f"{EXECUTIONS}/{execution}"),
        await scoped.get(f"{JOBS}/etl-payroll"),
        await of_queue.get(f"{JOBS}/pbyroll"),
        await of_queue.post(JOBS, json={"name": "x", "queue": "slow", "dependencies": ["pbyroll"], **HTTP}),
        await scoped.delete(f"{JOBS}/etl-load"),
    ]
    assert [one.status_code for one in answers] == [202, 403, 403, 404, 404, 400, 200]
    assert [one.text for one in answers if "payroll" in one.text.replace("etl-payroll", "")] == []


async def test_a_deleted_job_outside_the_scope_cannot_be_restored(people: People):
    await done((await people.a("admin")).delete(f"{JOBS}/payroll"))
    assert await status((await people.a("editor", jobs=ETL)).post(f"{JOBS}/payroll/restore", json={})) == 403


async def test_a_browser_has_the_scope_of_its_sign_in_link(people: People):
    scoped = await people.a("operator", jobs=ETL)
    code = (await done(scoped.post("/api/v1/sign-in/codes")))["code"]
    browser = people.bearing()
    me = await done(browser.post("/api/v1/sign-in", json={"code": code}))
    browser.headers["x-csrf-token"] = me["csrf"]

    assert me["jobs"] == ETL
    assert await status(browser.post(EXECUTIONS, json={"job": "payroll"})) == 403


# Workers


def presence(*queues: str) -> dict[str, object]:
    return {"protocol": PROTOCOL, "worker": "w", "queues": list(queues)}


async def test_a_worker_key_for_a_queue_serves_only_that_queue(people: People):
    bound = await people.a("worker", queues=["etl"])
    assert await status(bound.post(SESSIONS, json=presence("etl"))) == 201
    refusal = await bound.post(SESSIONS, json=presence("etl", "slow"))
    assert (refusal.status_code, "slow" in refusal.json()["detail"]) == (403, True)
    assert "--queue etl" in refusal.json()["remedy"]
    assert await status(bound.post(SESSIONS, json={"protocol": PROTOCOL, "worker": "w"})) == 403  # "default"


async def test_a_worker_key_cannot_use_a_session_of_another_queue(people: People):
    bound, free = await people.a("worker", queues=["etl"]), await people.a("worker")
    other = (await done(free.post(SESSIONS, json=presence("slow"))))["sessionId"]
    exchange = {"channel": 0, "n": 1, "free": 1}

    for method, path in (("POST", "exchange"), ("POST", "executions"), ("POST", "steps"), ("POST", "awaits")):
        answer = await bound.request(method, f"{SESSIONS}/{other}/{path}", json=exchange)
        assert answer.status_code in (400, 404), (path, answer.text)
    assert await status(bound.post(f"{SESSIONS}/{other}/exchange", json=exchange)) == 404
    assert await status(bound.delete(f"{SESSIONS}/{other}")) == 404
    assert await status(free.post(f"{SESSIONS}/{other}/exchange", json=exchange)) == 200


async def test_submissions_of_a_bound_workers_job_are_accepted_in_its_namespace(people: People):
    await submitted(people, "etl-load")
    bound = await people.a("worker", queues=["etl"])
    session = (await done(bound.post(SESSIONS, json={**presence("etl"), "kinds": ["http"]})))["sessionId"]
    got = await done(bound.post(f"{SESSIONS}/{session}/exchange", json={"channel": 0, "n": 1, "free": 1}))
    held = got["slices"][0]
    child = {"parcel": held["parcel"], "item": held["lo"], "attempt": held["attempt"], "call": "1"}

    made = await bound.post(f"{SESSIONS}/{session}/executions", json={**child, "submissions": [{"job": "etl-slow"}]})

    assert made.status_code == 201, made.text
