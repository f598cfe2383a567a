"""The output of commands: tables for people, one JSON or YAML document for programs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from horae.cli.terminal import echo
from horae.env import SECOND, Instant
from horae.model.base.control_characters import visible
from horae.model.base.duration import DAY, HOUR, MINUTE

if TYPE_CHECKING:
    from rich.table import Table

Format = Literal["table", "json", "yaml"]
Column = tuple[str, str | Callable[[Any], Any]]  # a heading, and a key or a function of the row


class TimeField(str):
    """The name of a field with a time, which a table shows relative to now, such as "2m ago".

    A dotted name, such as "execution.completedAt", reads a nested object.
    """


WIDE = 10_000  # the width in characters if the output is no terminal: so large that no line is cut
SHOWN_IF_EMPTY = frozenset({"result", "payload"})  # fields whose value is the user's JSON, shown even if empty
DATA = SHOWN_IF_EMPTY | {"params"}  # fields whose value is the user's JSON
STYLES = {
    "success": "green",
    "failed": "red",
    "running": "blue",
    "cancelled": "bright_black",
    "skipped": "magenta",
    "paused": "yellow",
    "late": "yellow",
    "draining": "yellow",
    "lost": "red",
    "live": "green",
    "ok": "green",
    "warn": "yellow",
    "fail": "red",
    "created": "green",
    "changed": "yellow",
}


NOTHING: tuple[Any, ...] = (None, "", [], {})


class Printer:
    """A printer of documents in the requested format."""

    def __init__(self, output: Format, now: Callable[[], Instant]) -> None:
        self.output = output
        self._now = now

    @property
    def is_for_people(self) -> bool:
        return self.output == "table"

    def document(self, document: Any) -> None:
        """Print one complete document, for programs."""
        if self.output == "json":
            echo(msgspec.json.format(msgspec.json.encode(document), indent=2))
        else:
            echo(as_yaml(document), nl=False)

    def list(self, document: Mapping[str, Any], columns: Sequence[Column], empty: str) -> None:
        """Print a list as a table with one line per item, or the text `empty` if it has no items."""
        if not self.is_for_people:
            return self.document(document)
        if not document["items"]:
            echo(empty)
            return None
        self.table(document["items"], columns)
        if document.get("nextCursor"):
            echo(f"There are more; continue with --cursor {document['nextCursor']}", err=True)
        return None

    def table(self, rows: Iterable[Any], columns: Sequence[Column]) -> None:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading, _ in columns:
            table.add_column(heading, no_wrap=heading in ("ID", "EXECUTION"), overflow="fold")
        for row in rows:
            table.add_row(*(self._cell(row, column) for column in columns))
        show(table)

    def one(self, document: Mapping[str, Any], leave_out: Iterable[str] = ()) -> None:
        """Print one object with a line per field, without empty fields."""
        if not self.is_for_people:
            return self.document(document)
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(no_wrap=True, style="bold")
        table.add_column(overflow="fold")
        for name, value in document.items():
            if name not in leave_out and value not in ((None,) if name in SHOWN_IF_EMPTY else NOTHING):
                shown = as_data(value) if name in DATA else self._full(value)
                colour = STYLES.get(value, "") if name == "status" else ""
                table.add_row(name, Text(visible(shown), style=colour))
        show(table)
        return None

    def say(self, text: str) -> None:
        """Print a sentence for people; when the output is for programs, print it on stderr beside the document."""
        echo(text, err=not self.is_for_people)

    def age(self, text: str | None) -> str:
        """Return a time relative to now: "2m ago", "in 3h"."""
        if not text:
            return ""
        micros = self._now() - int(datetime.fromisoformat(text).timestamp() * SECOND)
        return f"{rough(micros)} ago" if micros >= 0 else f"in {rough(-micros)}"

    def _cell(self, row: Any, column: Column) -> Any:
        from rich.text import Text

        key = column[1]
        if isinstance(key, TimeField):
            value: Any = self.age(reduce(lambda part, name: (part or {}).get(name), key.split("."), row))
        else:
            value = key(row) if callable(key) else row.get(key)
        shown = brief(value)
        return Text(visible(shown), style=STYLES.get(shown, "") if column[0] in ("STATUS", "STATE", "RESULT") else "")

    def _full(self, value: Any) -> str:
        return as_yaml(value).rstrip("\n") if isinstance(value, dict | list) else brief(value)


def show(table: "Table") -> None:
    """Print a table as wide as the terminal. If the output is no terminal, print it without cuts, colours, padding."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if console.is_terminal:
        return console.print(table)
    console.width = WIDE
    with console.capture() as captured:
        console.print(table)
    return echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def brief(value: Any) -> str:
    """Return a value as the text of a cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        return ",".join(f"{key}={text_or_json(item)}" for key, item in value.items())
    return ",".join(map(text_or_json, value)) if isinstance(value, list | tuple) else str(value)


def text_or_json(value: Any) -> str:
    """Return a text unchanged, any other value as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def as_data(value: Any) -> str:
    """Return a user's JSON value: objects and lists as YAML, others as JSON.

    A text is quoted only if it is empty or would parse as JSON.
    """
    if isinstance(value, dict | list):
        return as_yaml(value).rstrip("\n")
    return msgspec.json.encode(value).decode() if not isinstance(value, str) or _reads_otherwise(value) else value


def _reads_otherwise(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return not text
    return True


def one_line(document: dict[str, Any], leave_out: tuple[str, ...] = (), most: int = 160) -> str:
    """Return a document as "field: value" pairs without empty fields. Values other than texts become JSON.

    A line longer than `most` characters is cut.
    """
    text = ", ".join(
        f"{name}: {value if isinstance(value, str) else msgspec.json.encode(value).decode()}"
        for name, value in document.items()
        if name not in leave_out and value not in (None, "", [], {})
    )
    return text if len(text) <= most else f"{text[: most - 1]}…"


def rough(micros: int) -> str:
    """Return a duration in two units: "3d 4h", "2m 14s", "0.4s"."""
    if micros < 10 * SECOND:
        return f"{micros / SECOND:.1f}s"
    for big, small, names in ((DAY, HOUR, "dh"), (HOUR, MINUTE, "hm"), (MINUTE, SECOND, "ms")):
        if micros >= big:
            whole, rest = divmod(micros, big)
            return f"{whole}{names[0]} {rest // small}{names[1]}" if rest // small else f"{whole}{names[0]}"
    return f"{micros // SECOND}s"


def as_yaml(document: Any) -> str:
    import yaml

    text: str = yaml.safe_dump(msgspec.to_builtins(document), sort_keys=False, allow_unicode=True, width=120)
    return text
