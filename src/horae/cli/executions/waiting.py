"""Waiting until an execution ends, with or without its log, and the exit code for its outcome."""

import asyncio
import shutil
import sys
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, TypeVar

import click

from horae.cli.output import text_or_json
from horae.cli.remote import Api
from horae.cli.terminal import ERASE_LINE, Terminal, echo
from horae.cli.times import SPAN
from horae.client.views import ExecutionInfo, LogLine
from horae.env import SECOND, Micros
from horae.errors import HoraeError
from horae.model.base.control_characters import visible
from horae.model.base.duration import format_duration

T = TypeVar("T")

PATIENCE = 2.0  # seconds after which a waiting user is shown a hint about the execution


timeout_option = click.option(
    "--timeout",
    type=SPAN,
    help="The longest wait, such as 10m; then the exit code is 1, and the execution continues.",
)


async def finish(api: Api, execution: ExecutionInfo, *, follow: bool = False, timeout: Micros | None = None) -> None:
    """Wait until an execution is final and show it; exit 1 unless it succeeded or was skipped."""
    hinting = asyncio.ensure_future(_show_hint_later(api, execution.id))
    try:
        final = await in_time(api, _end(api, execution.id, follow), timeout, execution.id)
    finally:
        hinting.cancel()
    if api.out.is_for_people:
        _summarise(api, final)
    else:
        api.out.document(final.raw)
    exit_by(final)


def exit_by(final: ExecutionInfo) -> None:
    """Exit with 1 unless an execution succeeded or was skipped."""
    if final.status not in ("success", "skipped"):
        click.get_current_context().exit(1)


async def _end(api: Api, execution_id: str, follow: bool) -> ExecutionInfo:
    if follow:
        live = OpenLines(api)
        async for page in api.client.executions.log_pages(execution_id, follow=True, on_open=live.show):
            live.clear()
            show_lines(api, page)
        live.clear()
    return await api.client.executions.wait(execution_id)


async def in_time(
    api: Api,
    waiting: Coroutine[Any, Any, T],
    timeout: Micros | None,
    name: str,
    *,
    what: str = "Execution",
    remedy: str | None = None,
) -> T:
    """Return the result of `waiting`, or raise an error after the timeout.

    In the error, `what` and `name` describe the awaited thing, and `remedy` follows the words "It continues; ".
    """
    work = asyncio.ensure_future(waiting)
    if timeout is None:
        return await work
    alarm = asyncio.ensure_future(api.env.clock.sleep(timeout / SECOND))
    try:
        await asyncio.wait({work, alarm}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
    finally:
        alarm.cancel()
        work.cancel()
    again = remedy or f"wait again with `horae executions show {name} --wait`"
    raise HoraeError(f"{what} {name} has not ended after {format_duration(timeout)}.", f"It continues; {again}.")


async def _show_hint_later(api: Api, execution_id: str) -> None:
    await api.env.clock.sleep(PATIENCE)
    await show_hint(api, execution_id)


async def show_hint(api: Api, execution_id: str) -> None:
    """Print the hint for an execution that does not start, such as a missing worker or a paused job."""
    with suppress(HoraeError):  # the execution was accepted, and the user knows that
        if hint := (await api.client.executions.get(execution_id)).hint:
            echo(hint, err=True)


def show_lines(api: Api, lines: Sequence[LogLine]) -> None:
    """Print log lines on the stream to which the job wrote them. With -o json or yaml, print all of them on stderr.

    Neighbouring lines are printed together, because one write per line would take longer than reading them.
    """
    for err, some in groupby(lines, lambda line: line.stream == "stderr" or not api.out.is_for_people):
        _show_log("\n".join(line.text for line in some), err)


def _show_log(text: str, err: bool) -> None:
    """Print log lines unchanged. On a terminal, only colours have an effect, and each colour ends with its line."""
    if (sys.stderr if err else sys.stdout).isatty():
        lines = visible(text, colours=True).split("\n")
        text = "\n".join(f"{line}\x1b[0m" if "\x1b" in line else line for line in lines)
    echo(text, err=err, styled=True, color=True)


class OpenLines:
    """Log lines without an end yet, shown on a terminal below the other lines and replaced as they grow."""

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
        api.out.say(f"Result: {text_or_json(final.result)}")
    if final.error_message:
        echo(final.error_message, err=True)
