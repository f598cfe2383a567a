"""Questions to the user at the terminal; without a terminal, the error names the option that answers the question."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from horae.cli.terminal import echo
from horae.errors import BadInput


def confirm(question: str, option: str = "--yes") -> None:
    """Ask for a confirmation; abort unless the user agrees."""
    with _answered(option):
        agreed = click.confirm(question, err=True)
    if not agreed:
        raise click.Abort


def prompt(question: str, option: str, **how: Any) -> str:
    """Ask for a text and return it."""
    with _answered(option):
        typed: str = click.prompt(question, err=True, **how)
    return typed


@contextmanager
def _answered(option: str) -> Iterator[None]:
    """Raise BadInput when the input is closed or ends without an answer; let the user's Ctrl-C or Ctrl-D pass."""
    remedy = f"Give {option} to answer in advance."
    if sys.stdin is None:
        raise BadInput("The question cannot be answered: the input is closed.", remedy)
    try:
        yield
    except click.Abort:
        if sys.stdin.isatty():
            raise
        echo(err=True)
        raise BadInput(
            "The question was not answered: the input is not a terminal, and it has ended.", remedy
        ) from None
