"""Approvals name roles, and there is no way around them. Attack: an operator who passes by what it may not agree to."""

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
    """A workflow under way that waits for somebody of these roles."""
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


async def test_only_a_role_that_is_named_or_one_above_it_answers(people: People):
    execution = await asked(people, "editor")
    for role in ("viewer", "operator", "worker"):
        assert await status(await people.a(role), f"{execution}/approve") == 403
        assert await status(await people.a(role), f"{execution}/reject") == 403
    assert await status(await people.a("editor"), f"{execution}/approve") == 200


async def test_without_roles_whoever_operates_answers(people: People):
    execution = await asked(people)
    assert await status(await people.a("viewer"), f"{execution}/approve") == 403
    assert await status(await people.a("operator"), f"{execution}/approve") == 200


async def test_an_approval_is_not_passed_by(people: People):
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


async def test_a_part_of_a_workflow_is_not_run_by_its_id_either(people: People):
    await asked(people, "admin")
    operator = await people.a("operator")
    parts = (await done(operator.get(f"{JOBS}?owner=release")))["items"]
    assert [part["name"] for part in parts] == ["release/announce", "release/deploy"]
    answer = await operator.post(EXECUTIONS, json={"job": parts[0]["jobId"]})
    assert (answer.status_code, "runs in it only" in answer.json()["detail"]) == (409, True)
