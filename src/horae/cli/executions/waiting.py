"""Waiting for an execution's end, with its log or without, and the exit code it earns."""

import asyncio
import shutil
import sys
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, TypeVar

import click

from horae.cli.output import as_json
from horae.cli.remote import Api
from horae.cli.terminal import ERASE_LINE, Terminal, echo
from horae.client.views import ExecutionInfo, LogLine
from horae.env import SECOND
from horae.errors import HoraeError
from horae.model.base.control_characters import visible
from horae.model.base.duration import parse_duration

T = TypeVar("T")

PATIENCE = 2.0  # seconds after which somebody who waits is told what the execution waits for


timeout_option = click.option(
    "--timeout", metavar="SPAN", help="Wait no longer than this, as 10m; the execution goes on, the exit code is 1."
)


async def finish(api: Api, execution: ExecutionInfo, *, follow: bool = False, timeout: str | None = None) -> None:
    """Wait until it is final and show it; exit 1 unless it succeeded or was skipped."""
    hinting = asyncio.ensure_future(_hint(api, execution.id))
    try:
        final = await in_time(api, _end(api, execution.id, follow), timeout, execution.id)
    finally:
        hinting.cancel()
    if api.out.is_for_people:
        _summarise(api, final)
    else:
        api.out.document(final.raw)
    if final.status not in ("success", "skipped"):
        click.get_current_context().exit(1)


async def _end(api: Api, id: str, follow: bool) -> ExecutionInfo:
    if follow:
        live = OpenLines(api)
        async for page in api.client.executions.log_pages(id, follow=True, on_open=live.show):
            live.clear()
            show_lines(api, page)
        live.clear()
    return await api.client.executions.wait(id)


async def in_time(
    api: Api,
    waiting: Coroutine[Any, Any, T],
    timeout: str | None,
    id: str,
    *,
    what: str = "Execution",
    remedy: str | None = None,
) -> T:
    """Wait for something as long as a person is willing to. Raises what to do when that is over."""
    work = asyncio.ensure_future(waiting)
    if timeout is None:
        return await work
    alarm = asyncio.ensure_future(api.env.clock.sleep(parse_duration(timeout, field="--timeout") / SECOND))
    try:
        await asyncio.wait({work, alarm}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
    finally:
        alarm.cancel()
        work.cancel()
    again = remedy or f"wait again with `horae executions show {id} --wait`"
    raise HoraeError(f"{what} {id} has not ended after {timeout}.", f"It goes on; {again}.")


async def _hint(api: Api, id: str) -> None:
    await api.env.clock.sleep(PATIENCE)
    await tell_hint(api, id)


async def tell_hint(api: Api, id: str) -> None:
    """Tell what an execution that does not begin needs: a worker that knows it, or its job to be resumed."""
    with suppress(HoraeError):  # it was accepted, and that has been told
        if hint := (await api.client.executions.get(id)).hint:
            echo(hint, err=True)


def show_lines(api: Api, lines: Sequence[LogLine]) -> None:
    """Log lines where their kind belongs: what was stderr there is stderr here; documents keep stdout for themselves.

    Neighbours go out together: a write for each would take longer than reading them.
    """
    for err, some in groupby(lines, lambda line: line.stream == "stderr" or not api.out.is_for_people):
        _show_log("\n".join(line.text for line in some), err)


def _show_log(text: str, err: bool) -> None:
    """Print log lines as they were written; on a terminal with no controls but colours, which end with their line."""
    if (sys.stderr if err else sys.stdout).isatty():
        lines = visible(text, colours=True).split("\n")
        text = "\n".join(f"{line}\x1b[0m" if "\x1b" in line else line for line in lines)
    echo(text, err=err, styled=True, color=True)


class OpenLines:
    """Lines that have no end yet, where people look at a terminal: below the others, in place of their last state."""

    def __init__(self, api: Api) -> None:
        self._is_live = api.out.is_for_people and sys.stdout.isatty()
        self._shown = ""

    def show(self, lines: Sequence[LogLine]) -> None:
        text = " | ".join(click.unstyle(line.text) for line in lines)
        if self._is_live and text != self._shown:
            self.clear()
            self._shown = text
            echo(text[: shutil.get_terminal_size().columns - 1], nl=False)

    def clear(self) -> None:
        if self._shown:
            terminal = sys.stdout
            if isinstance(terminal, Terminal):
                terminal.erase_line()
            else:
                terminal.write(ERASE_LINE)
        self._shown = ""


def _summarise(api: Api, final: ExecutionInfo) -> None:
    took = ""
    if final.started_at and final.completed_at:
        took = f" after {(final.completed_at - final.started_at).total_seconds():.1f} s"
    tries = f", attempt {final.attempt}" if final.attempt and final.attempt > 1 else ""
    api.out.say(f"Execution {final.id}: {final.status}{took}{tries}.")
    if final.result is not None:
        api.out.say(f"Result: {as_json(final.result)}")
    if final.error_message:
        echo(final.error_message, err=True)
