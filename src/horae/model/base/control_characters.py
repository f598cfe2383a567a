"""Control characters: refused in names, and made visible in text from outside.

A terminal executes C0 and C1 controls. Terminals and browsers obey the characters that change the direction of text, so
a line with such a character can look different from its content.
"""

import re

from horae.errors import BadInput

_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_BREAKS = "\u2028\u2029"
_ANY = re.compile(f"[\x00-\x1f\x7f-\x9f{_BREAKS}{_BIDI}]")
_UNSAFE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BREAKS}{_BIDI}]")  # all but tab and line feed
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")


def refuse_controls(text: str, field: str) -> None:
    """Raise BadInput when a text of one line, such as a name, contains a control character."""
    found = _ANY.search(text)
    if found is not None:
        said = f"{field} holds the control character U+{ord(found[0]):04X}."
        raise BadInput(said, "Write it without control characters and line breaks.", field=field)


def visible(text: str, *, colours: bool = False) -> str:
    """Return a text with its control characters escaped, as in `\\x1b`. Tabs and line feeds stay.

    With `colours`, the escape sequences that set colours stay, too.
    """
    if _UNSAFE.search(text) is None:
        return text
    if not colours:
        return _UNSAFE.sub(_escape, text)
    parts = _COLOUR.split(text)
    kept = [*_COLOUR.findall(text), ""]
    return "".join(_UNSAFE.sub(_escape, part) + colour for part, colour in zip(parts, kept, strict=True))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
