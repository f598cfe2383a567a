"""The shared parts of the benches' commands: options, an event loop that ends cleanly, and a progress bar."""

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from horae.cli.lazy import HoraeCommand

if TYPE_CHECKING:
    from bench.kit.results import Result

FORMATS = ("table", "json", "jsonl")


class Steps:
    """A progress display; without a terminal it is silent, except for long benches."""

    def __init__(self, total: int, long: bool = False) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._total, self._number, self._begun = total, 0, time.perf_counter()
        self._lines = long and not sys.stderr.isatty()
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("", total=total)

    def begin(self, what: str) -> None:
        self._number += 1
        self.tell(what)

    def tell(self, what: str) -> None:
        """Show the progress of the present step."""
        if self._lines:
            minutes, seconds = divmod(round(time.perf_counter() - self._begun), 60)
            click.echo(f"{minutes:3}:{seconds:02}  {self._number}/{self._total}  {what}", err=True)
        if self._bar is not None:
            self._bar.update(self._task, description=what)

    def done(self, count: int = 1) -> None:
        if self._bar is not None:
            self._bar.advance(self._task, count)

    def __enter__(self) -> "Steps":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def count_option(name: str, default: int, about: str, least: int = 1) -> Callable[..., Any]:
    return click.option(name, type=click.IntRange(min=least), default=default, show_default=True, help=about)


store_option = click.option(
    "--store",
    metavar="URL",
    help="Measure a fresh store there, or of this kind (sqlite://, postgresql://).  [default: one of each kind]",
)
concurrency_option = count_option("--concurrency", 10, "Executions the worker runs at a time.")


def repeats_option(default: int = 3) -> Callable[..., Any]:
    return count_option("--repeats", default, "The number of runs; the median counts.")


def bench(*examples: str) -> Callable[[Callable[..., Coroutine[Any, Any, "Sequence[Result]"]]], HoraeCommand]:
    """Turn a measuring coroutine function into a command of the same name."""

    def decorate(measure: Callable[..., Coroutine[Any, Any, "Sequence[Result]"]]) -> HoraeCommand:
        @wraps(measure)
        def callback(output: Any, **options: Any) -> None:
            from bench.kit.results import show
            from horae.cli.process import run, tune_garbage_collector

            _hush()
            tune_garbage_collector()
            show(run(_ending_on_term(measure(**options))), output)

        format_option = click.option(
            "-o", "--output", type=click.Choice(FORMATS), default="table",
            help="A table, one JSON document, or one JSON line per result.",
        )  # fmt: skip
        return click.command(cls=HoraeCommand, examples=examples)(format_option(callback))

    return decorate


def _hush() -> None:
    """Suppress logs of the engine and of workers in the bench's own process, which would mix with its results."""
    import logging

    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))


async def _ending_on_term(work: Coroutine[Any, Any, Any]) -> Any:
    """Handle SIGTERM and SIGHUP like Ctrl-C: the processes of the bench are ended first."""
    with _cancelled_by(signal.SIGTERM, signal.SIGHUP):
        return await work


@contextmanager
def _cancelled_by(*numbers: signal.Signals) -> Iterator[None]:
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    taken: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        taken.append(number)
        if task is not None:
            task.cancel()

    for number in numbers:
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    except asyncio.CancelledError:
        if taken:
            raise KeyboardInterrupt from None
        raise
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
