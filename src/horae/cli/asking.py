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
    """Refuse when there is no input, or when it ends without an answer, unless a person ended it."""
    remedy = f"Give {option} to answer beforehand."
    if sys.stdin is None:
        raise BadInput("Nobody can answer: the input is closed.", remedy)
    try:
        yield
    except click.Abort:
        if sys.stdin.isatty():
            raise
        echo(err=True)
        raise BadInput("Nobody answered: the input is not a terminal, and it has ended.", remedy) from None
