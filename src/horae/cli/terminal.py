"""Output to the terminal: control characters in texts that users wrote are made visible instead of being executed.

Otherwise, a job's output could rewrite the screen, the window's title or the clipboard of the user who reads it.
"""

import os
import sys
from typing import Any, TextIO

import click

from horae.model.base.control_characters import visible

ERASE_LINE = "\r\x1b[2K"


class Terminal:
    """A text stream to a terminal that passes colours, tabs and line feeds, and shows other control characters."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(visible(text, colours=True))
        return len(text)

    def erase_line(self) -> None:
        """Erase the last line and move to its start."""
        self._stream.write(ERASE_LINE)

    def __getattr__(self, name: str) -> Any:
        if name in ("buffer", "writelines"):  # would bypass the escaping
            raise AttributeError(name)
        return getattr(self._stream, name)


def echo(text: str | bytes = "", *, err: bool = False, nl: bool = True, styled: bool = False, **more: Any) -> None:
    """Print a text. On a terminal its control characters are made visible; a `styled` text may contain colours.

    A caller that styles a text must first make the control characters visible in the parts that come from users.
    """
    text = text.decode() if isinstance(text, bytes) else text
    stream = sys.stderr if err else sys.stdout
    shown = visible(text) if not styled and stream.isatty() else text
    click.echo(shown, err=err, nl=nl, **more)


def style(text: str, **how: Any) -> str:
    """Return a text in a style, with its own control characters made visible."""
    return click.style(visible(text), **how)


def guard_terminals() -> None:
    """Pass all terminal output of this process through a stream that makes control characters visible.

    Output to a closed stream is discarded. The descriptors of closed streams are taken, so that no other file gets them
    and receives the output of a library or a child process.
    """
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            descriptor = os.open(os.devnull, os.O_RDWR)  # the lowest free one
            if name != "stdin":  # a closed input is reported
                setattr(sys, name, os.fdopen(descriptor, "w"))
        elif name != "stdin" and stream.isatty() and not isinstance(stream, Terminal):
            setattr(sys, name, Terminal(stream))
