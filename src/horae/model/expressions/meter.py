"""The budget of expressions: steps, which stand for time and memory, counted while an expression is computed.

One step is about a quarter of a microsecond, 64 characters of a new text or 8 elements of a new list. `shared` gives
all expressions of one piece of work (a definition, a bulk submission, a fire, a workflow's advance) one budget.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from horae.errors import BadInput, Costly

MOST_STEPS = 100_000
ASKED_STEPS = 20_000  # of what is computed for many at a time: keys, filters, params from events
ITEM_STEPS = 50  # more, for each item of a bulk submission or of a foreach
DEFINITION_STEPS = 1_000_000
COMPILE_STEPS = 4  # to compile one character
PATTERN_STEPS = 2000  # to compile a pattern
MOST_TEXT = 4096  # characters of one expression
CHARACTERS_A_STEP = 64
ELEMENTS_A_STEP = 8
FAILURE_STEPS = 8  # for a part that failed, and that another may make up for
REMEDY = "Go through shorter lists, do not nest loops, or leave the work to the job."


class Wrong(Exception):
    """An expression cannot be computed from these values; `&&` and `||` may do without the part that failed."""


class Missing(Wrong):
    """A name or a member is not there."""


class OverBudget(Exception):
    """Expressions took more steps than they may; no operator recovers from it."""

    def __init__(self, most: int) -> None:
        self.most = most
        super().__init__(f"it takes more than {most} steps to compute")


class Meter:
    """Counts down the steps that are left."""

    __slots__ = ("left", "most", "over")

    def __init__(self, most: int = MOST_STEPS) -> None:
        self.left = self.most = most
        self.over: tuple[str, bool] | None = None  # an expression that took too much, in words; whether by itself

    def grant(self, steps: int) -> None:
        """Allow so many steps more."""
        self.left, self.most = self.left + steps, self.most + steps

    def take(self, steps: int) -> None:
        """Spend steps. Raises OverBudget when none are left."""
        self.left -= steps
        if self.left < 0:
            raise OverBudget(self.most)

    def take_text(self, length: int) -> None:
        """Spend what a text of so many characters costs."""
        self.take(length // CHARACTERS_A_STEP)


class Definition(Meter):
    """Counts what it takes to check a definition: to compile its expressions, and to compute some of them."""

    __slots__ = ()


_shared: ContextVar[Meter | None] = ContextVar("horae_expressions", default=None)


@contextmanager
def shared(meter: Meter | None = None) -> Iterator[None]:
    """Give all expressions that are computed inside one budget. Inside another `shared`, the outer budget counts.

    The body must not await: a task that it starts would take the budget with it.
    """
    if _shared.get() is not None:
        yield
        return
    token = _shared.set(meter or Meter())
    try:
        yield
    finally:
        _shared.reset(token)


@contextmanager
def within(most: int) -> Iterator[Meter]:
    """Compute something with a smaller budget of its own, which counts against the shared one, too."""
    outer = _shared.get()
    meter = Meter(most if outer is None else max(0, min(most, outer.left)))
    token = _shared.set(meter)
    try:
        yield meter
    finally:
        _shared.reset(token)
        if outer is not None:
            outer.left -= meter.most - max(meter.left, 0)


@contextmanager
def defining() -> Iterator[None]:
    """Check a definition with one budget for all of its expressions. Raises BadInput when they take more."""
    meter = Definition(DEFINITION_STEPS)
    with shared(meter):
        yield
    if meter.left < 0:
        raise BadInput("The expressions of this definition take too much work to check.", REMEDY)


def blame(told: str, *, own: bool) -> None:
    """Tell the work at hand of an expression that took too much, also where the work goes on without it."""
    meter = _shared.get()
    if meter is not None:
        meter.over = meter.over or (told, own)


def refuse_blamed() -> None:
    """Refuse what was made without an expression that took too much. Raises Costly."""
    meter = _shared.get()
    if meter is not None and meter.over is not None:
        told, meter.over = meter.over[0], None
        raise Costly(told, REMEDY)


def compiling(text: str) -> None:
    """Spend what it takes to compile a text, if it is part of a definition. Raises BadInput."""
    _define(COMPILE_STEPS * len(text))


def compiling_pattern() -> None:
    """Spend what it takes to compile a pattern, if it is part of a definition. Raises BadInput."""
    _define(PATTERN_STEPS)


def _define(steps: int) -> None:
    meter = _shared.get()
    if isinstance(meter, Definition):
        try:
            meter.take(steps)
        except OverBudget:
            raise BadInput("This definition has too many and too long expressions.", REMEDY) from None


def current() -> Meter:
    """The budget of the work at hand, or a new one."""
    return _shared.get() or Meter()
