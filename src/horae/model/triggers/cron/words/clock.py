"""The clock of an expression in plain English: its times of the day."""

from horae.model.triggers.cron.wall import CronExpression, Ticks
from horae.model.triggers.cron.words.lists import listed, ordinal, progression, ranges, round_ranges

_MOST_TIMES = 4  # times of the day that are listed individually
_MOST_VALUES = 6  # values of one field that are listed individually


def time_in_words(x: CronExpression) -> str | None:
    """Describe times as `at 09:00` or `every 15 minutes between 09:00 and 17:59`; None if they are too complex."""
    seconds, minutes, hours = (_values(ticks) for ticks in (x.seconds, x.minutes, x.hours))
    if seconds == [0]:
        return _minutes_and_hours(minutes, hours)
    if len(seconds) * len(minutes) * len(hours) <= _MOST_TIMES:
        return f"at {listed([f'{h:02d}:{m:02d}:{s:02d}' for h in hours for m in minutes for s in seconds])}"
    often = _every(seconds, "second", " of each minute")
    if often:
        return _within(often, minutes, hours)
    coarse = _minutes_and_hours(minutes, hours)
    if coarse is None or len(seconds) > _MOST_VALUES:
        return None
    return f"{coarse}, at {'second' if len(seconds) == 1 else 'seconds'} {listed([*map(str, seconds)])}"


def _minutes_and_hours(minutes: list[int], hours: list[int]) -> str | None:
    if len(hours) < 24 and len(minutes) * len(hours) <= _MOST_TIMES:
        return f"at {listed([f'{h:02d}:{m:02d}' for h in hours for m in minutes])}"
    if len(minutes) == 1 and len(hours) < 24:
        if hourly := _every_hours(minutes[0], hours):
            return hourly
    often = _every(minutes, "minute", " of each hour" if len(hours) > 1 else "")
    if often is None and len(minutes) > _MOST_VALUES:
        return None
    marks = listed([f":{minute:02d}" for minute in minutes])
    if len(hours) == 24:
        return often or f"every hour at {marks}"
    during = _during(hours)
    return None if during is None else f"{often or f'at {marks}'}{during}"


def _every(values: list[int], unit: str, restart: str) -> str | None:
    """Describe equally spaced seconds of a minute, or minutes of an hour; return None if they are not.

    `restart`, such as " of each hour", is added if the spacing does not divide 60, because then it starts again.
    """
    if len(values) == 60:
        return f"every {unit}"
    if values == [0, 30]:
        return f"every 30 {unit}s"
    steps = progression(values)
    if steps is None:
        return None
    words = f"every {unit}" if steps.step == 1 else f"every {steps.step} {unit}s"
    if steps.step == 1 or steps.first >= steps.step or steps.last + steps.step < 60:
        return f"{words} from :{steps.first:02d} to :{steps.last:02d}"
    words += restart if 60 % steps.step else ""
    return f"{words} from :{steps.first:02d}" if steps.first else words


def _every_hours(minute: int, hours: list[int]) -> str | None:
    steps, around = progression(hours), round_ranges(hours, 24, lambda hour: f"{hour:02d}:{minute:02d}")
    if len(around) == 1 and len(hours) > 2:
        return f"every hour from {around[0]}"
    if steps is None:
        return None
    words = f"every {steps.step} hours"
    if steps.first < steps.step and 24 % steps.step == 0 and len(hours) == 24 // steps.step:
        return f"{words} at :{minute:02d}" if steps.first == 0 else f"{words} from {steps.first:02d}:{minute:02d}"
    return f"{words} from {steps.first:02d}:{minute:02d} to {steps.last:02d}:{minute:02d}"


def _within(often: str, minutes: list[int], hours: list[int]) -> str | None:
    """Describe frequent seconds in some minutes of some hours."""
    during = "" if len(hours) == 24 else _during(hours)
    if during is None:
        return None
    if len(minutes) == 60:
        return f"{often}{during}"
    words = _every_nth(minutes, "minute", 60) or listed(ranges(minutes, lambda minute: f":{minute:02d}"))
    return f"{often} during {words}{during or ' of every hour'}" if words.count(":") <= _MOST_VALUES else None


def _during(hours: list[int]) -> str | None:
    """Describe the hours during which frequent fires happen."""
    whole = round_ranges(hours, 24, lambda hour: f"{hour:02d}")
    if len(hours) == 1 or (len(whole) == 1 and " to " in whole[0]):
        return f" between {whole[0][:2]}:00 and {whole[0][-2:]}:59"
    words = _every_nth(hours, "hour", 24) or f"the hours {listed(whole)}"
    return f" during {words}" if len(whole) <= _MOST_VALUES or words.startswith("every") else None


def _every_nth(values: list[int], unit: str, size: int) -> str | None:
    steps = progression(values)
    if steps is None or steps.step == 1 or steps.first >= steps.step or steps.last + steps.step < size:
        return None
    first = f" from {steps.first:02d}" if steps.first else ""
    return f"every {ordinal(steps.step)} {unit}{first}"


def _values(ticks: Ticks) -> list[int]:
    return [value for value in range(60) if ticks.bits >> value & 1]
