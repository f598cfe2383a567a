"""The level of a log line: the level that its text names, or else the level of its stream."""

import re
from typing import Literal

Level = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[Level, ...] = ("debug", "info", "warning", "error")
LOOKED_AT = 120  # characters of a line in which its level is searched

_WORDS: dict[str, Level] = {
    "trace": "debug", "debug": "debug", "info": "info", "notice": "info", "warn": "warning", "warning": "warning",
    "error": "error", "err": "error", "fatal": "error", "critical": "error", "panic": "error", "emergency": "error",
}  # fmt: skip
_NAMES = "|".join(sorted(_WORDS, key=len, reverse=True))
# A level is named as a separate word in capitals, or as the value of a field: level=warn, "level": "error", [error].
_SAID = re.compile(
    rf"(?<![A-Za-z_-])({_NAMES.upper()})(?![A-Za-z_-])|(?i:\blevel\"?[=:] ?\"?({_NAMES})\b)|\[({_NAMES})\]",
)
_BY_STREAM: dict[str, Level] = {"stderr": "warning"}


def level_of(stream: str, text: str) -> Level:
    """Return the level of a line."""
    said = _SAID.search(text, 0, LOOKED_AT)
    if said is not None:
        return _WORDS[said[said.lastindex or 1].lower()]
    return _BY_STREAM.get(stream, "info")


def levels_from(least: Level) -> frozenset[Level]:
    """Return this level and the more severe ones."""
    return frozenset(LEVELS[LEVELS.index(least) :])
