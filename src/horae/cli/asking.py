"""Questions to the person at the terminal; where nobody can answer, the refusal names the option that answers them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from horae.cli.terminal import echo
from horae.errors import BadInput


def confirm(question: str, option: str = "--yes") -> None:
    """Go on only after a yes."""
    with _answered(option):
        agreed = click.confirm(question, err=True)
    if not agreed:
        raise click.Abort


def prompt(question: str, option: str, **how: Any) -> str:
    """Return what is typed."""
    with _answered(option):
        typed: str = click.prompt(question, err=True, **how)
    return typed


@contextmanager
def _answered(option: str) -> Iterator[None]:
    """Refuse when the input ends without an answer, unless a person ended it."""
    try:
        yield
    except click.Abort:
        if sys.stdin is not None and sys.stdin.isatty():
            raise
        echo(err=True)
        detail = "Nobody answered: the input is not a terminal, and it has ended."
        raise BadInput(detail, f"Give {option} to answer beforehand.") from None
