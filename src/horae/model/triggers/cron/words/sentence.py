"""Put the English sentence of an expression together from its clock and its calendar."""

from horae.model.triggers.cron.wall import Expression
from horae.model.triggers.cron.words.calendar import days_in_words, months_in_words, years_in_words
from horae.model.triggers.cron.words.clock import time_in_words


def cron_in_words(x: Expression) -> str | None:
    """One short sentence without a full stop, or None for what is too intricate for one."""
    time, days = time_in_words(x), days_in_words(x)
    if time is None or days is None:
        return None
    if not days and time.startswith("at "):
        days = " every day"
    return f"{time}{days}{months_in_words(x)}{years_in_words(x)}"
