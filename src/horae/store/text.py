"""Changes that both drivers make to a statement's text."""

import re

_OWN_WITH = re.compile(r"\s*WITH\s+(RECURSIVE\s+)?", re.IGNORECASE)


def with_given(given: str, text: str) -> str:
    """Put `WITH given ...` before a statement that may have a WITH of its own."""
    own = _OWN_WITH.match(text)
    if own is None:
        return f"{given} {text}"
    return f"{given}, {text[own.end() :]}".replace("WITH", "WITH RECURSIVE" if own[1] else "WITH", 1)
