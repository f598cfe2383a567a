"""The types of options that name an instant or a length of time."""

import re
from typing import Any

import click

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
TIME_HELP = "An instant, such as 2026-11-15T08:00:00Z; a date alone, such as 2026-11-15, is its midnight in UTC."


class Time(click.ParamType):  # type: ignore[type-arg]  # not generic at run time before click 8.4
    """An RFC 3339 time, parsed by the server, or a date, which becomes its midnight in UTC."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = value.strip() if isinstance(value, str) else value
        return f"{text}T00:00:00Z" if isinstance(text, str) and _DATE.fullmatch(text) else value


class SpanType(click.ParamType):  # type: ignore[type-arg]  # not generic at run time before click 8.4
    """A length of time in microseconds, at least `least`, for options that no server checks."""

    name = "span"

    def __init__(self, least: int = 0) -> None:
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from horae.errors import BadInput
        from horae.model.base.duration import format_duration, parse_duration

        if isinstance(value, int):
            return value
        try:
            micros = parse_duration(value)
        except BadInput as error:
            self.fail(str(error), param, ctx)
        if micros < self.least:
            self.fail(f"{value} is less than {format_duration(self.least)}.", param, ctx)
        return micros


TIME = Time()
SPAN = SpanType()
