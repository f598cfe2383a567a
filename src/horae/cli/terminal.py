"""The terminal: control characters in what others wrote are shown, not obeyed.

A job's output could otherwise rewrite the screen, the window's title or the clipboard of its reader.
"""

import sys
from typing import Any, TextIO

import click

from horae.model.base.control_characters import visible

ERASE_LINE = "\r\x1b[2K"


class Terminal:
    """A text stream to a terminal, which lets colours pass and no other control but tabs and line feeds."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(visible(text, colours=True))
        return len(text)

    def erase_line(self) -> None:
        """Begin the last line anew."""
        self._stream.write(ERASE_LINE)

    def __getattr__(self, name: str) -> Any:
        if name in ("buffer", "writelines"):  # would pass by what is shown
            raise AttributeError(name)
        return getattr(self._stream, name)


def echo(text: str | bytes = "", *, err: bool = False, nl: bool = True, styled: bool = False, **more: Any) -> None:
    """Print a text. On a terminal its control characters are shown; what is `styled` may have colours.

    Whoever styles a text makes those of others visible in it.
    """
    text = text.decode() if isinstance(text, bytes) else text
    stream = sys.stderr if err else sys.stdout
    shown = visible(text) if not styled and stream.isatty() else text
    click.echo(shown, err=err, nl=nl, **more)


def style(text: str, **how: Any) -> str:
    """Return a text in a style, its own control characters made visible."""
    return click.style(visible(text), **how)


def guard_terminals() -> None:
    """Have all that this process prints to a terminal pass through one that shows control characters."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and stream.isatty() and not isinstance(stream, Terminal):
            setattr(sys, name, Terminal(stream))
