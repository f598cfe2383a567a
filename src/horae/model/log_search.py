"""What is looked for in log lines: a text, whatever its case, with `*` for anything between.

No regular expressions: some take as long as they like for one line, and whoever may read a log could stop a server.
"""

from collections.abc import Callable

from horae.errors import BadInput

MOST = 500  # characters
Matches = Callable[[str], bool]


def search_for(grep: str) -> Matches:
    """Whether a line has what is looked for. Raises BadInput when that is nothing."""
    if grep.startswith("re:"):
        said = "Use a text with * for anything between, as in `grep=timeout*ms`."
        raise BadInput("Logs are not searched by regular expressions.", said, field="grep")
    parts = [part.casefold() for part in grep.split("*") if part]
    if not parts or len(grep) > MOST:
        raise BadInput("There is nothing to look for.", f"Give a text of 1 to {MOST} characters.", field="grep")
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
