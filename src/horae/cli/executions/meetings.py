"""The options that say what submissions of a job share."""

from typing import Any

import click

from horae.cli.values import read_json

FIELDS = ("unique", "debounce", "batch", "cache")
MEETING_OPTIONS = (
    click.option(
        "--unique",
        metavar="KEY",
        help="One live execution per key, as '${params.table}'; true for one at all; or JSON.",
    ),
    click.option("--debounce", metavar="SPAN", help="Run when submissions have ceased for so long, as 5s; or JSON."),
    click.option("--batch", metavar="N", help="One execution gets up to so many submissions; or JSON."),
    click.option("--cache", metavar="SPAN", help="A result answers equal submissions for so long, as 1h; or JSON."),
)
_PLAIN = {"unique": "key", "debounce": "wait", "batch": "size", "cache": "ttl"}


def meetings(options: dict[str, Any]) -> dict[str, Any]:
    """What the options say; what is not JSON stands for the one field that matters most."""
    return {name: _rule(name, options[name]) for name in FIELDS if options[name] is not None}


def _rule(name: str, text: str) -> Any:
    if text.lstrip().startswith(("{", "@")):
        return read_json(text, f"--{name}")
    if name == "unique" and text == "true":
        return True
    return {_PLAIN[name]: int(text) if name == "batch" and text.isdecimal() else text}
