"""Approvals name roles, and cannot be bypassed. Attack: an operator works around a required approval."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from horae.model.tenancy.principal import Role
from tests.security.people import Api, People, done, opened

JOBS, EXECUTIONS = "/api/v1/jobs", "/api/v1/executions"


@pytest.fixture
async def people() -> AsyncIterator[People]:
    async with opened() as people:
        yield people


async def asked(people: People, *roles: Role) -> str:
    """Start a workflow that waits for an approval by these roles."""
    steps: list[dict[str, Any]] = [
        {"name": "ask", "approval": {"roles": list(roles)}},
        {"name": "deploy", "after": ["ask"], "http": "https://a.example"},
        {"name": "announce", "after": ["deploy"], "http": "https://b.example"},
    ]
    admin = await people.a("admin")
    await done(admin.post(JOBS, json={"name": "release", "workflow": {"steps": steps}}))
    made = (await done(admin.post(EXECUTIONS, json={"job": "release"})))["executionId"]
    await people.node.base.directory.step()
    await people.node.workflows.opener.step()
    return f"{EXECUTIONS}/{made}"


async def status(who: Api, path: str, body: dict[str, Any] | None = None) -> int:
    return int((await who.post(path, json=body or {})).status_code)


async def test_only_the_named_role_or_a_higher_one_answers(people: People):
    execution = await asked(people, "editor")
    for role in ("viewer", "operator", "worker"):
        assert await status(await people.a(role), f"{execution}/approve") == 403
        assert await status(await people.a(role), f"{execution}/reject") == 403
    assert await status(await people.a("editor"), f"{execution}/approve") == 200


async def test_without_roles_any_operator_answers(people: People):
    execution = await asked(people)
    assert await status(await people.a("viewer"), f"{execution}/approve") == 403
    assert await status(await people.a("operator"), f"{execution}/approve") == 200


async def test_an_approval_cannot_be_bypassed(people: People):
    execution = await asked(people, "admin")
    operator = await people.a("operator")

    assert await status(operator, f"{execution}/steps/ask/skip") == 403
    assert await status(operator, f"{execution}/steps/ask/complete", {"result": {"approved": True}}) == 403
    assert await status(operator, f"{JOBS}/release%2Fdeploy/trigger") == 409
    assert await status(operator, EXECUTIONS, {"job": "release/deploy"}) == 409
    for action in ("skip", "complete"):
        assert await status(operator, f"{execution}/steps/deploy/{action}") == 403  # what follows would run
        assert await status(operator, f"{execution}/steps/announce/{action}") == 403
    assert await status(await people.a("admin"), f"{execution}/approve") == 200
    assert await status(operator, f"{execution}/steps/deploy/complete") == 200


async def test_a_step_cannot_be_run_by_its_job_id(people: People):
    await asked(people, "admin")
    operator = await people.a("operator")
    parts = (await done(operator.get(f"{JOBS}?ownerWorkflow=release")))["items"]
    assert [part["name"] for part in parts] == ["release/announce", "release/deploy"]
    answer = await operator.post(EXECUTIONS, json={"job": parts[0]["jobId"]})
    assert (answer.status_code, "runs in it only" in answer.json()["detail"]) == (409, True)
