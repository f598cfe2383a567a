"""Waiting for an execution's end, with its log or without, and the exit code it earns."""

import asyncio

import click
import msgspec

from horae.cli.remote import Api
from horae.client.views import Execution, LogLine

PATIENCE = 2.0  # seconds after which somebody who waits is told what the execution waits for


async def finish(api: Api, execution: Execution, *, follow: bool = False) -> None:
    """Wait until it is final and show it; exit 1 unless it succeeded or was skipped."""
    hinting = asyncio.ensure_future(_hint(api, execution.id))
    try:
        if follow:
            async for line in api.client.executions.logs(execution.id, follow=True):
                show_line(api, line)
        final = await api.client.executions.wait(execution.id)
    finally:
        hinting.cancel()
    if api.out.is_for_people:
        _summarise(api, final)
    else:
        api.out.document(final.raw)
    if final.status not in ("success", "skipped"):
        click.get_current_context().exit(1)


async def _hint(api: Api, id: str) -> None:
    """Tell what an execution that does not begin needs: a worker, or its job to be resumed."""
    await api.env.clock.sleep(PATIENCE)
    if hint := (await api.client.executions.get(id)).hint:
        click.echo(hint, err=True)


def show_line(api: Api, line: LogLine) -> None:
    """A log line where its kind belongs: what was stderr there is stderr here; documents keep stdout for themselves."""
    click.echo(line.text, err=line.stream == "stderr" or not api.out.is_for_people)


def _summarise(api: Api, final: Execution) -> None:
    took = ""
    if final.started_at and final.completed_at:
        took = f" after {(final.completed_at - final.started_at).total_seconds():.1f} s"
    tries = f", attempt {final.attempt}" if final.attempt and final.attempt > 1 else ""
    api.out.say(f"Execution {final.id}: {final.status}{took}{tries}.")
    if final.result is not None:
        api.out.say(f"Result: {_shown(final.result)}")
    if final.error_message:
        click.echo(final.error_message, err=True)


def _shown(result: object) -> str:
    """A text as it is, anything else as JSON."""
    return result if isinstance(result, str) else msgspec.json.encode(result).decode()
