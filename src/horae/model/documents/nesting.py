"""The maximum nesting of JSON that workers send. It does not depend on the recursion limit of the interpreter."""

import re
from itertools import accumulate

MAX_NESTING = 500  # levels of lists and objects
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)  # possessive: takes no memory for going back
_OTHERS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = {mark: 1 if mark in b"[{" else -1 for mark in b"[]{}"}


def is_too_deep(text: bytes) -> bool:
    """Return whether valid JSON nests lists and objects deeper than allowed."""
    if len(text) <= 2 * MAX_NESTING or text.count(b"[") + text.count(b"{") <= MAX_NESTING:
        return False
    marks = _STRING.sub(b"", text).translate(None, _OTHERS)
    return max(accumulate(map(_STEPS.__getitem__, marks)), default=0) > MAX_NESTING
