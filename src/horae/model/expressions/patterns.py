"""Search patterns for log lines: a case-insensitive text with `*` as a wildcard, or `re:` and a regular expression.

Regular expressions are matched by an automaton, in a time proportional to the line's length. With most other engines,
a pattern can take exponential time, so any reader of a log could block a server. An automaton does not support
lookaround and back references.
"""

from collections.abc import Callable

from horae.errors import BadInput

MOST = 500  # characters
PATTERN = "re:"
MOST_COMPILED = 32_000  # bytes of a pattern's automaton; matching the longest lines takes a few ms each
MOST_CACHED = 1_000_000  # bytes of memory that the automaton may use while matching
Matcher = Callable[[str], bool]


def search_for(grep: str) -> Matcher:
    """Return a function that tests whether a line matches. Raises BadInput for an empty, too long or invalid search."""
    if grep.startswith(PATTERN):
        return _pattern(grep.removeprefix(PATTERN))
    parts = [part.casefold() for part in grep.split("*") if part]
    if not parts or len(grep) > MOST:
        detail = "The search text is too long." if parts else "The search text is empty."
        raise BadInput(detail, f"Give a text of 1 to {MOST} characters.", field="grep")
    if len(parts) == 1:
        only = parts[0]
        return lambda line: only in line.casefold()

    def matches(line: str) -> bool:
        folded, at = line.casefold(), 0
        for part in parts:
            found = folded.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return True

    return matches


def _pattern(pattern: str) -> Matcher:
    if not pattern:
        remedy = f"Give a pattern of 1 to {MOST} characters after {PATTERN}"
        raise BadInput(f"There is no pattern after {PATTERN}", remedy, field="grep")
    try:
        return pattern_matcher(pattern, MOST)
    except ValueError:
        raise BadInput(
            f"{pattern!r:.200} is not a valid pattern for a search in logs.",
            f"Use at most {MOST} characters, close all brackets, use no lookaround and no back references, and repeat"
            " nothing many hundred times; or use a text with * for any characters, as in `timeout*ms`.",
            field="grep",
        ) from None


def pattern_matcher(pattern: str, most: int) -> Matcher:
    """Return a function that tests whether a text matches a pattern.

    Raises ValueError if the pattern is invalid or too large.
    """
    import jsonschema_rs

    if len(pattern) > most:
        raise ValueError
    options = jsonschema_rs.RegexOptions(size_limit=MOST_COMPILED, dfa_size_limit=MOST_CACHED)
    try:
        return jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=options).is_valid
    except (jsonschema_rs.ValidationError, ValueError):
        raise ValueError from None
