"""Steps that run repeatedly, in the API's format and in stored form: per item of a list, or in a loop."""

from typing import Annotated, Any

from msgspec import field

from horae.env import Micros
from horae.errors import BadInput
from horae.model.base.duration import DAY
from horae.model.fields.kinds import Custom, Duration, Integer
from horae.model.fields.table import Document, Field, Group, Object
from horae.model.fields.values import an_int, kind_of
from horae.model.workflows.kinds import CONDITION, WorkflowPart

MOST_RUNS = 10_000  # runs of a loop
MOST_ITEMS = 100_000  # items of a foreach; the server's settings may allow fewer
DEFAULT_RUNS = 100  # the default bound on the runs of a loop
_FOREACH = 'Write {"items": "${steps.extract.result.parts}", "concurrency": 10, "tolerate": "5%"}.'
_SHARE = 'Write a number of items, or a share: "5%".'


def _read_items(value: Any, at: str) -> Any:
    if isinstance(value, list):
        if len(value) > MOST_ITEMS:
            raise BadInput(f"{at} has {len(value)} items.", f"At most {MOST_ITEMS} are allowed.", field=at)
        return value
    if not isinstance(value, str) or "${" not in value:
        raise BadInput(f"{at} is {kind_of(value)}, not a list.", _FOREACH, field=at)
    return value


def _read_tolerate(given: Document, prefix: str) -> dict[str, Any]:
    value, at = given["tolerate"], f"{prefix}tolerate"
    if not isinstance(value, str) or not value.strip().endswith("%"):
        return {"tolerate": an_int(value, at, 0, MOST_ITEMS, _SHARE)}
    number = value.strip()[:-1].strip()
    if not number.isdigit() or int(number) > 100:
        raise BadInput(f"{at} cannot be {value[:20]!r}.", _SHARE, field=at)
    return {"tolerate_percent": int(number)}


def _write_tolerate(foreach: Any) -> dict[str, Any]:
    share = foreach.tolerate_percent
    return {"tolerate": foreach.tolerate or None if share is None else f"{share}%"}


TOLERATE = Group(_read_tolerate, _write_tolerate)
ITEMS = Custom(_read_items, str | list[Any], "str | Sequence[Any]")
TOLERATED = Custom(lambda value, at: value, int | str, "int | str")


class Foreach(WorkflowPart, frozen=True, kw_only=True):
    """One execution for each item of a list, or of the list that an expression gives."""

    items: Annotated[Any, Field(ITEMS, "A list, or an expression for one.", example="${steps.extract.result.parts}")]
    concurrency: Annotated[
        int | None, Field(Integer(1, MOST_ITEMS), "How many items may be in progress at once.", example=10)
    ] = None
    tolerate: Annotated[
        int,
        TOLERATE,
        Field(TOLERATED, "How many items may fail before the step fails, as a number or a share.", example="5%"),
    ] = 0
    tolerate_percent: int | None = None  # set in place of `tolerate` if the user gave a share of all items

    def tolerates(self, total: int) -> int:
        """Return how many of `total` items may fail."""
        return self.tolerate if self.tolerate_percent is None else total * self.tolerate_percent // 100


FOREACH = Object(Foreach, _FOREACH, short=((str, "items"), (list, "items")), brief=True)
EVERY = Duration(0, 400 * DAY)
RUNS = Integer(1, MOST_RUNS)


class Loop(WorkflowPart, frozen=True, kw_only=True):
    """Consecutive runs: `condition` must hold before each run, or with `until` ends the loop after a run."""

    condition: str
    until: bool = False
    every: Micros = 0  # the least time between the end of a run and the start of the next
    # A loop that needs more runs fails. Stored definitions and the worker protocol call this `most`.
    max_runs: int = field(default=DEFAULT_RUNS, name="most")


def _read_loop(given: Document, prefix: str) -> dict[str, Any]:
    words = [word for word in ("while", "until") if word in given]
    if len(words) == 2:
        raise BadInput("It has both while and until.", "Keep one of them: each ends the loop.", field=f"{prefix}until")
    if not words:
        extra = next(name for name in ("every", "maxRuns") if name in given)
        detail = f"{extra} has no effect without while or until."
        raise BadInput(detail, f"Add `while` or `until`, or remove `{extra}`.", field=f"{prefix}{extra}")
    word = words[0]
    if "foreach" in given:
        detail = f"It has both foreach and {word}."
        raise BadInput(detail, "Put the loop into a nested workflow: `steps`.", field=f"{prefix}{word}")
    condition = CONDITION.read(given[word], f"{prefix}{word}")
    more: dict[str, Any] = {
        attribute: kind.read(given[name], f"{prefix}{name}")
        for name, attribute, kind in (("every", "every", EVERY), ("maxRuns", "max_runs", RUNS))
        if name in given
    }
    return {"loop": Loop(condition=condition, until=word == "until", **more)}


def _write_loop(step: Any) -> dict[str, Any]:
    loop = step.loop
    if loop is None:
        return {}
    every = {"every": EVERY.write(loop.every)} if loop.every else {}
    return {"until" if loop.until else "while": loop.condition, **every, "maxRuns": loop.max_runs}


LOOP = Group(_read_loop, _write_loop)
