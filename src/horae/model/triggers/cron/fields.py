"""The fields of an expression: their names and ranges, and the parsing of one item of a field."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NoReturn

from horae.errors import BadInput

MONTHS = {"JAN": 1, "FEB": 2, "MAR": 3, "APR": 4, "MAY": 5, "JUN": 6}
MONTHS |= {"JUL": 7, "AUG": 8, "SEP": 9, "OCT": 10, "NOV": 11, "DEC": 12}
WEEKDAYS = {"SUN": 0, "MON": 1, "TUE": 2, "WED": 3, "THU": 4, "FRI": 5, "SAT": 6}

ORDER = "The fields are: [second] minute hour day-of-month month day-of-week."

_SPREAD = re.compile(r"H(?:\((\w+)-(\w+)\))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class CronField:
    """One field of a dialect. `H` stands for a value in the range `spread`: a hash of the job's key and `name`."""

    name: str
    title: str
    lo: int
    hi: int
    spread: tuple[int, int] | None
    names: Mapping[str, int] = field(default_factory=dict)
    order: str = ORDER  # the order of the dialect's fields, for error messages
    wraps: bool = False  # whether a range such as `22-2` is allowed, which continues at the beginning of the field


SECOND_FIELD = CronField("second", "second", 0, 59, (0, 59))
MINUTE_FIELD = CronField("minute", "minute", 0, 59, (0, 59))
HOUR_FIELD = CronField("hour", "hour", 0, 23, (0, 23))
# H picks a day up to 28, which every month has.
DAY_OF_MONTH_FIELD = CronField("dom", "day-of-month", 1, 31, (1, 28))
MONTH_FIELD = CronField("month", "month", 1, 12, (1, 12), MONTHS)
DAY_OF_WEEK_FIELD = CronField("dow", "day-of-week", 0, 7, (0, 6), WEEKDAYS)  # 0 and 7 are both Sunday


def refuse(where: CronField, item: str, reason: str, remedy: str) -> NoReturn:
    """Refuse an item of a field with the reason and a suggestion."""
    raise BadInput(f"{item[:40]!r} in the {where.title} field: {reason}.", remedy, field="schedule")


def read_item(where: CronField, item: str, key: str) -> int:
    """Parse one item of a list (`5`, `1-5`, `*/15`, `MON-FRI`, `H/10`), and return it as bits; bit 0 is the value 0."""
    base, slash, steps = item.partition("/")
    step = _read_step(where, item, steps) if slash else 1
    lo, hi = _read_range(where, item, base, step if slash else 0, key)
    bits = 0
    for value in range(lo, hi + 1, step):
        bits |= 1 << (value if value <= where.hi else value - _size(where))
    return bits


def read_number(where: CronField, item: str, text: str) -> int:
    """Parse a value of the field, given by number or by name."""
    if text in where.names:
        return where.names[text]
    if not text.isdigit() or not text.isascii() or len(text) > 9:
        refuse(where, item, _no_number(text), _expected(where))
    value = int(text)
    if not where.lo <= value <= where.hi:
        refuse(where, item, f"{value} is outside {where.lo}-{where.hi}", _instead(where, value))
    return value


def _read_step(where: CronField, item: str, text: str) -> int:
    if not text.isdigit() or not text.isascii() or len(text) > 9:
        refuse(where, item, "the step after / must be a whole number", f'For example "*/{_example_step(where)}".')
    if int(text) == 0:
        refuse(where, item, "a step of 0 is not allowed", f'For example "*/{_example_step(where)}".')
    return int(text)


def _read_range(where: CronField, item: str, base: str, step: int, key: str) -> tuple[int, int]:
    """Return the first and last value of an item; `step` is 0 if the item has no step.

    The last value of a range that wraps counts on past the end of the field: in the hour field, `22-2` is 22 to 26.
    """
    if base == "*" or (base == "?" and not step):
        return where.lo, where.hi
    if found := _SPREAD.fullmatch(base):
        return _read_spread(where, item, found, step, key)
    first, dash, last = base.partition("-")
    lo = read_number(where, item, first)
    if not dash:
        return lo, _open_end(where, item, lo, step) if step else lo
    hi = 7 if where is DAY_OF_WEEK_FIELD and last == "SUN" and lo > 0 else read_number(where, item, last)
    if hi < lo and not where.wraps:
        refuse(where, item, "the range runs backwards", _turned(where, first, last))
    return lo, hi if hi >= lo else hi + _size(where)


def _open_end(where: CronField, item: str, lo: int, step: int) -> int:
    """Return the last value of an item such as `5/15`: the end of the field.

    Cron implementations disagree on whether the week ends with Saturday (6) or with Sunday (7). So an item of weekdays
    that would include the 7 is refused.
    """
    if where is DAY_OF_WEEK_FIELD and lo > 0 and (7 - lo) % step == 0:
        remedy = f'Write "{lo}-7/{step}" with Sunday or "{lo}-6/{step}" without.' if lo < 7 else 'Write "SUN".'
        refuse(where, item, "it is not clear whether Sunday is included", remedy)
    return where.hi


def _read_spread(where: CronField, item: str, found: re.Match[str], step: int, key: str) -> tuple[int, int]:
    """Return the first and last value of an item with `H`.

    For `H` both are a value that depends only on the key. For `H/15` the first depends on the key, the last is the end
    of the range.
    """
    if where.spread is None:
        refuse(where, item, f"H is not allowed in the {where.title} field", _expected(where))
    if not key:
        refuse(where, item, "H needs a job's name, and there is none here", "Give a number instead.")
    lo, hi = where.spread
    if found.group(1):
        lo, hi = (read_number(where, item, part) for part in found.groups())
        if hi < lo:
            refuse(where, item, "the range runs backwards", f'Write "H({hi}-{lo})".')
    if step:
        return spread(key, where.name, lo, min(lo + step - 1, hi)), hi
    value = spread(key, where.name, lo, hi)
    return value, value


def spread(key: str, name: str, lo: int, hi: int) -> int:
    """Return a value between lo and hi that depends only on the key and the field's name."""
    return lo + int.from_bytes(sha256(f"{key}\0{name}".encode()).digest()[:8], "big") % (hi - lo + 1)


def _no_number(text: str) -> str:
    if not text:
        return "a value is missing"
    if text in MONTHS or text in WEEKDAYS:
        return f"{text} is a {'month' if text in MONTHS else 'weekday'}"
    return f"{text[:20]} is not a value of this field"


def _expected(where: CronField) -> str:
    if where.names:
        names = list(where.names)
        return f"Use {where.lo}-{where.hi} or {names[0]}-{names[-1]}. {where.order}"
    return f"Use {where.lo}-{where.hi}. {where.order}"


def _instead(where: CronField, value: int) -> str:
    if value == where.hi + 1 and where.lo == 0 and where is not DAY_OF_WEEK_FIELD:
        return f"Write 0: the {where.title} after {where.hi} is 0."
    if where.name == "dom" and value > 31:
        return 'Write "L" for the last day of the month.'
    if where.name == "dow" and value == 0:
        return 'In the quartz dialect 1 is Sunday and 7 Saturday. Write "SUN".'
    if where is DAY_OF_WEEK_FIELD and 1970 <= value <= 2200:
        return f"There is no field for the year; the quartz dialect has one, the seventh. {ORDER}"
    return _expected(where)


def _turned(where: CronField, first: str, last: str) -> str:
    """Suggest two forward ranges in place of a backwards range; for years, which do not repeat, the swapped range."""
    if where.name == "year":
        return f'Write "{last}-{first}".'
    if where is DAY_OF_WEEK_FIELD:
        return f'Write "{first}-SAT,SUN-{last}".' if first != "SAT" else f'Write "SAT,SUN-{last}".'
    return f'Write "{first}-{where.hi},{where.lo}-{last}".'


def _size(where: CronField) -> int:
    return where.hi - where.lo + 1


def _example_step(where: CronField) -> int:
    return {"hour": 6, "dom": 2, "month": 3, "dow": 2}.get(where.name, 15)
