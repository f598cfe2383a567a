"""What is probably not meant, though it can be done."""

from collections.abc import Iterator

from horae.model.cron import fields as f
from horae.model.cron.fields import Field
from horae.model.cron.wall import Expression

_CYCLES = {"second": 60, "minute": 60, "hour": 24}


def lint(x: Expression) -> list[str]:
    """Warnings about an expression that is valid but surprising, in plain words."""
    return [*_steps(x), *_often(x), *_either_or_both(x), *_short_months(x)]


def _steps(x: Expression) -> Iterator[str]:
    for where, text in zip((f.SECOND, f.MINUTE, f.HOUR, f.DOM, f.MONTH, f.DOW), x.fields, strict=True):
        for item in text.split(","):
            base, slash, step = item.partition("/")
            if slash and base == "*":
                yield from _step(where, item, int(step))


def _step(where: Field, item: str, step: int) -> Iterator[str]:
    cycle = _CYCLES.get(where.name)
    if step > where.hi - where.lo:
        yield f'"{item}" in the {where.title} field is longer than the field, so it means {where.lo} only.'
    elif cycle and cycle % step:
        yield f'"{item}" in the {where.title} field starts again at 0, so its last step is shorter than the others.'


def _often(x: Expression) -> Iterator[str]:
    second, minute, hour = x.fields[:3]
    if second == "*":
        yield "It fires every second of each matching minute; with five fields there are no seconds."
    elif minute == "*" and hour != "*":
        yield f'It fires every minute of each matching hour; for once an hour write "0" instead of "*" before "{hour}".'


def _either_or_both(x: Expression) -> Iterator[str]:
    dom, dow = x.fields[3], x.fields[5]
    if dom in ("*", "?") or dow in ("*", "?"):
        return
    if dom[0] in "*?" or dow[0] in "*?":
        yield "Day-of-month and day-of-week must both match, because one of them starts with *."
    else:
        yield "Day-of-month and day-of-week are both restricted: it fires on days that match either."


def _short_months(x: Expression) -> Iterator[str]:
    dom, dow = x.fields[3], x.fields[5]
    if dow in ("*", "?") and dom in ("29", "30", "31", "29W", "30W", "31W"):
        yield f'Months without a day {dom.rstrip("W")} are left out; "L" is the last day of every month.'
