"""`horae audit`: proofs about a live store."""

from typing import Any

import click

from horae.cli.lazy import Group
from horae.cli.output import Column, brief
from horae.cli.remote import Api, remote


@click.group(cls=Group, examples=("horae audit executions",))
def audit() -> None:
    """Check a live store for executions out of place."""


@audit.command(examples=("horae audit executions", "horae audit executions --repair"))
@click.option("--repair", is_flag=True, help="Queue again what has no owner.")
@remote
async def executions(api: Api, repair: bool) -> None:
    """Check that each execution is on one shelf, without overlap, with an owner; exit 1 naming those that are not."""
    found = (await api.client.audit.executions(repair=repair)).raw
    wrong: list[Any] = found.get("problems") or []
    if api.out.is_for_people:
        _tell(api, found, wrong)
    else:
        api.out.document(found)
    if wrong and not found.get("repaired"):
        click.get_current_context().exit(1)


def _tell(api: Api, found: dict[str, Any], wrong: list[Any]) -> None:
    counts = found.get("counts") or {}
    api.out.say(f"Checked {', '.join(f'{number} {shelf}' for shelf, number in counts.items()) or 'nothing'}.")
    if not wrong:
        return api.out.say("Every execution is in its place.")
    columns: list[Column] = [(name.upper(), name) for name in wrong[0]] if isinstance(wrong[0], dict) else []
    if columns:
        api.out.table(wrong, columns)
    else:
        for row in wrong:
            api.out.say(brief(row))
    if found.get("repaired"):
        return api.out.say(f"Repaired {found['repaired']}.")
    return api.out.say(f"{len(wrong)} out of place. `horae audit executions --repair` queues again what has no owner.")
