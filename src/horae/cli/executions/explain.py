"""`horae explain`: the reasons why an execution or a job does not run."""

from typing import Any
from uuid import UUID

import click

from horae.cli.lazy import HoraeCommand
from horae.cli.remote import Api, remote
from horae.cli.terminal import echo, style
from horae.client.kernel.explanation_view import Explanation
from horae.errors import NotFound
from horae.model.base.control_characters import visible


@click.command(
    cls=HoraeCommand,
    examples=("horae explain EXECUTION", "horae explain daily-report", "horae explain EXECUTION -o json"),
)
@click.argument("what", metavar="EXECUTION|JOB")
@remote
async def explain(api: Api, what: str) -> None:
    """Show why an execution or a job does not run.

    The reasons are listed in the order in which they are checked, each with its remedy. The estimated start follows. An
    id is looked up among executions first, then among jobs.
    """
    found = await _explained(api, what)
    if not api.out.is_for_people:
        return api.out.document(found.raw)
    _show(api, found.raw)
    for one in found.raw.get("executions") or ():
        echo(f"\nExecution {one['executionId']} ({one['status']}):")
        _show(api, one, "  ")
    return None


async def _explained(api: Api, what: str) -> Explanation:
    if not _is_id(what):
        return await api.client.jobs.explain(what)
    try:
        return await api.client.executions.explain(what)
    except NotFound as error:
        try:
            return await api.client.jobs.explain(what)
        except NotFound:
            raise error from None


def _is_id(what: str) -> bool:
    try:
        UUID(what)
    except ValueError:
        return False
    return True


def _show(api: Api, found: dict[str, Any], indent: str = "") -> None:
    blockers = found["blockers"]
    if not blockers:
        echo(f"{indent}{found['summary']}")
    for number, blocker in enumerate(blockers, 1):
        until = f" ({api.out.age(blocker['until'])})" if blocker.get("until") else ""
        gate, said = style(blocker["gate"], bold=True), visible(blocker["message"])
        echo(f"{indent}{number}. {gate}: {said}{until}", styled=True)
        echo(f"{indent}   {blocker['opensWhen']}")
    start = found.get("estimate")
    if start and start.get("startsAt"):
        echo(f"{indent}It probably starts {api.out.age(start['startsAt'])}. {start['reason']}")
    elif start:
        echo(f"{indent}Its start cannot be estimated. {start['reason']}")
