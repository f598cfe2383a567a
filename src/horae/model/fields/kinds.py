"""Kinds of values. A kind reads a field from JSON and writes it, and has its types in requests, answers and the SDK."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, Union

from msgspec import Meta

from horae.env import Instant, Micros
from horae.errors import BadInput
from horae.model.base.duration import format_duration, parse_duration
from horae.model.base.instant import format_instant, parse_instant
from horae.model.fields.values import (
    NAME,
    a_duration,
    a_key,
    a_list,
    a_name,
    a_number,
    a_text,
    an_int,
    kind_of,
    one_of,
    tags,
)

Given = Literal["once", "repeated", "pairs"]  # how often a CLI option may be given; pairs: repeated NAME=VALUE

SpanText = Annotated[
    str | int | float,
    Meta(description='"5m", "1h30m", ISO 8601 or seconds.', extra_json_schema={"examples": ["5m", "PT1H", 90]}),
]

_spelled = lru_cache(1024)(format_duration)


@dataclass(frozen=True)
class Kind(ABC):
    """The reader, the writer and the types of one value."""

    @abstractmethod
    def read(self, value: Any, at: str) -> Any:
        """Return the value in its stored form, or raise BadInput; `at` is the path of the field."""

    def write(self, value: Any) -> Any:
        """Return a stored value, which is not None, in its API form."""
        return value

    @property
    def none(self) -> Any:
        """The API form of a missing value."""
        return None

    @property
    @abstractmethod
    def given(self) -> Any:
        """The type in requests."""

    @property
    def shown(self) -> Any:
        """The type in answers."""
        return self.given

    @property
    @abstractmethod
    def python(self) -> str:
        """The annotation of the SDK's keyword, as source text."""


@dataclass(frozen=True)
class Text(Kind):
    """A text of `least` to `most` characters; `reads` replaces the reader that checks this."""

    most: int
    least: int = 0
    reads: Callable[[Any, str], str] | None = None
    python = "str"

    @property
    def given(self) -> Any:
        return Annotated[str, Meta(min_length=self.least or None, max_length=self.most)]

    @property
    def shown(self) -> Any:
        return str

    def read(self, value: Any, at: str) -> str:
        return a_text(value, at, most=self.most, least=self.least) if self.reads is None else self.reads(value, at)


@dataclass(frozen=True)
class Name(Kind):
    """The name of a job, a queue or another object."""

    given = Annotated[str, Meta(pattern=f"^{NAME.pattern}$")]
    shown = str
    python = "str"

    def read(self, value: Any, at: str) -> str:
        return a_name(value, at, NAME)


@dataclass(frozen=True)
class Integer(Kind):
    least: int
    most: int
    remedy: str = ""
    shown = int
    python = "int"

    @property
    def given(self) -> Any:
        return Annotated[int, Meta(ge=self.least, le=self.most)]

    def read(self, value: Any, at: str) -> int:
        return an_int(value, at, self.least, self.most, self.remedy)


@dataclass(frozen=True)
class Number(Kind):
    least: float
    most: float
    shown = float
    python = "float"

    @property
    def given(self) -> Any:
        return Annotated[float, Meta(ge=self.least, le=self.most)]

    def read(self, value: Any, at: str) -> float:
        return a_number(value, at, self.least, self.most)


@dataclass(frozen=True)
class Flag(Kind):
    """True or false; `off` is the name of the CLI option for false, by default `not-NAME`."""

    off: str = ""
    given = bool
    python = "bool"

    def read(self, value: Any, at: str) -> bool:
        if value is True or value is False:
            return value
        raise BadInput(f"{at} is {kind_of(value)}, neither true nor false.", "Write true or false.", field=at)


@dataclass(frozen=True)
class Duration(Kind):
    least: Micros
    most: Micros
    given = SpanText
    shown = str
    python = "Span"

    def read(self, value: Any, at: str) -> Micros:
        micros = parse_duration(value, field=at)
        return micros if self.least <= micros <= self.most else a_duration(value, at, self.least, self.most)

    def write(self, value: Micros) -> str:
        return _spelled(value)


@dataclass(frozen=True)
class Moment(Kind):
    """An instant."""

    given = Annotated[str, Meta(description="RFC 3339 with an offset.", extra_json_schema={"format": "date-time"})]
    shown = str
    python = "datetime | str"

    def read(self, value: Any, at: str) -> Instant:
        return parse_instant(value, field=at)

    def write(self, value: Instant) -> str:
        return format_instant(value)


@dataclass(frozen=True)
class Choice(Kind):
    words: tuple[str, ...]
    shown = str

    @property
    def given(self) -> Any:
        return Literal[self.words]

    @property
    def python(self) -> str:
        return f"Literal[{', '.join(f'{chr(34)}{word}{chr(34)}' for word in self.words)}]"

    def read(self, value: Any, at: str) -> str:
        return one_of(value, at, self.words)


@dataclass(frozen=True)
class Key(Kind):
    """A key template; "" and None mean no key."""

    remedy: str = "Put it in quotes."
    given = str
    python = "str"

    def read(self, value: Any, at: str) -> str:
        if not isinstance(value, str):
            raise BadInput(f"{at} is {kind_of(value)}, not a text.", self.remedy, field=at)
        return a_key(value, at)

    def write(self, value: str) -> str | None:
        return value or None


@dataclass(frozen=True)
class Tags(Kind):
    given = Annotated[list[str] | dict[str, str], Meta(description='["nightly"] or {"team": "data"}.')]
    shown = dict[str, str]
    python = "Mapping[str, str]"

    def read(self, value: Any, at: str) -> dict[str, str]:
        return tags(value, at)


@dataclass(frozen=True)
class Custom(Kind):
    """A value with a reader of its own (`reads`) and perhaps a writer.

    `wire` is its type in requests, and `out` its type in answers if that differs. `none` is the API form of None.
    """

    reads: Callable[[Any, str], Any]
    wire: Any
    python: str = "Any"
    writes: Callable[[Any], Any] | None = None
    out: Any = None
    option: Given = "once"
    none: Any = None

    @property
    def given(self) -> Any:
        return self.wire

    @property
    def shown(self) -> Any:
        return self.wire if self.out is None else self.out

    def read(self, value: Any, at: str) -> Any:
        return self.reads(value, at)

    def write(self, value: Any) -> Any:
        return value if self.writes is None else self.writes(value)


@dataclass(frozen=True)
class ListOf(Kind):
    """A list of values of one kind. A single value of the type `single` may be given without a list."""

    item: Kind
    most: int
    remedy: str
    single: type | None = None
    check: Callable[[Any, str], None] | None = None

    @property
    def given(self) -> Any:
        listed = list[self.item.given]  # type: ignore[name-defined] # made of a value
        return listed if self.single is None else Union[self.item.given, listed]  # noqa: UP007 - made of values

    @property
    def shown(self) -> Any:
        return list[self.item.shown]  # type: ignore[name-defined] # made of a value

    @property
    def python(self) -> str:
        return f"Sequence[{self.item.python}]"

    def read(self, value: Any, at: str) -> tuple[Any, ...]:
        listed = [value] if self.single is not None and isinstance(value, self.single) else value
        values = a_list(listed, at, self.remedy, self.most)
        read = tuple(self.item.read(one, f"{at}[{i}]") for i, one in enumerate(values))
        if self.check is not None:
            self.check(read, at)
        return read

    def write(self, value: Any) -> list[Any]:
        return [self.item.write(one) for one in value]


def as_given(value: Any, at: str) -> Any:
    """Return a value as it is, because another reader checks it."""
    return value
