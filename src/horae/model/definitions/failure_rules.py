"""The rules of `retryOn` and `giveUpOn`, which match failures.

    ConnectionError  requests.*  an error's class or one of its parents, with or without its module
    exit:75  exit:64-78          an exit code
    http:503  http:5xx           the status of an HTTP response
    message:*deadlock*           the error's message

`*` and `?` match any characters. Regular expressions are not supported: servers evaluate the rules of all users, and
some expressions take forever.
"""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import lru_cache

from horae.model.fleet.protocol import Failure

Test = Callable[[Failure, int | None], bool]
ACCEPTED = 'Write an error\'s name ("ConnectionError", "requests.*"), "exit:75", "http:5xx" or "message:*deadlock*".'
_NAME = re.compile(r"[\w$.*?-]+")
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_CLASS = re.compile(r"([1-5])xx", re.IGNORECASE)


def matches(rules: tuple[str, ...], failure: Failure, exit_code: int | None) -> bool:
    """Return whether any of these rules matches this failure."""
    return any(compile_rule(rule)(failure, exit_code) for rule in rules)


@lru_cache(4096)
def compile_rule(rule: str) -> Test:
    """Compile a rule to a test. Raises ValueError, with the reason, for an invalid rule."""
    prefix, colon, rest = rule.partition(":")
    if not colon:
        return _named(rule)
    if prefix == "exit":
        lo, hi = _range(rest, f"{rule!r} names no exit code")
        return lambda failure, exit_code: exit_code is not None and lo <= exit_code <= hi
    if prefix == "http":
        lo, hi = _statuses(rest, f"{rule!r} names no HTTP status")
        return lambda failure, exit_code: failure.status is not None and lo <= failure.status <= hi
    if prefix == "message" and rest:
        pattern = rest.replace("[", "[[]")  # only * and ? are special
        return lambda failure, exit_code: fnmatchcase(failure.message, pattern)
    raise ValueError(f"{rule[:60]!r} is not a rule about failures")


def _named(rule: str) -> Test:
    if not _NAME.fullmatch(rule):
        raise ValueError(f"{rule[:60]!r} is not the name of an error")
    return lambda failure, exit_code: any(fnmatchcase(name, rule) for name in _names(failure))


def _names(failure: Failure) -> set[str]:
    """Return all names of the error: its type, its class and their parents, with and without modules."""
    common = ("Timeout",) if failure.kind == "timeout" else ()
    return {failure.type, *common, *failure.names, *(name.rpartition(".")[2] for name in failure.names)}


def _statuses(text: str, wrong: str) -> tuple[int, int]:
    hundreds = _CLASS.fullmatch(text)
    if hundreds:
        return int(hundreds[1]) * 100, int(hundreds[1]) * 100 + 99
    return _range(text, wrong)


def _range(text: str, wrong: str) -> tuple[int, int]:
    found = _RANGE.fullmatch(text)
    if not found:
        raise ValueError(wrong)
    lo, hi = int(found[1]), int(found[2] or found[1])
    if lo > hi:
        raise ValueError(f"{text!r} ends before it begins")
    return lo, hi
