"""Fields of triggers: the metadata of a field in a table, and the kinds of values that only triggers have."""

from dataclasses import dataclass
from typing import Any

from horae.env import Micros
from horae.errors import BadInput
from horae.model.base.duration import format_duration, parse_duration
from horae.model.fields.kinds import Custom, SpanText, Text
from horae.model.fields.table import Field
from horae.model.fields.values import kind_of
from horae.model.triggers.cron.parse import LONGEST_TEXT

SHORTEST_INTERVAL: Micros = 100_000
ACCEPTED = (
    'Write a cron expression such as "0 9 * * MON-FRI", {"every": "5m"}, {"at": "2026-11-15T08:00:00Z"} or '
    '{"cron": "0 9 * * *", "timezone": "Europe/Paris"}; {"event": "upload"}, {"webhook": true} or {"watch": "s3://..."}.'
)


@dataclass(frozen=True, eq=False)
class TriggerField(Field):
    """A field of a trigger, with trigger-specific metadata."""

    no_event: str = ""  # the reason why an external trigger cannot have this field
    between: bool = False  # whether a trigger with this field must also be decided at instants between its fires
    null: bool = False  # whether null is accepted and means the default, although the default is not None


def _read_cron(value: Any, at: str) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{at} is {kind_of(value)}, not a text.", ACCEPTED, field=at)
    return " ".join(value.split())


def _read_every(value: Any, at: str) -> Micros:
    every = parse_duration(value, field=at)
    if every < SHORTEST_INTERVAL:
        shortest = format_duration(SHORTEST_INTERVAL)
        remedy = f'Write {shortest} or longer, as {{"every": "5m"}}.'
        raise BadInput(f"An interval is at least {shortest}.", remedy, field=at)
    return every


CRON = Text(LONGEST_TEXT, 1, _read_cron)
EVERY = Custom(_read_every, SpanText, "Span", writes=format_duration, out=str)
