"""The budget of expressions: steps, which measure time and memory, counted during evaluation.

One step is about a quarter of a microsecond, 64 characters of a new text or 8 elements of a new list. `shared_budget`
gives one budget to all expressions of one piece of work: a definition, a bulk submission, a fire, or one decision about
a workflow.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from horae.errors import BadInput, Costly

MOST_STEPS = 100_000
SMALL_STEPS = 20_000  # for expressions that are evaluated often: keys, filters, params from events
ITEM_STEPS = 50  # additional steps for each item of a bulk submission or of a foreach
DEFINITION_STEPS = 1_000_000
COMPILE_STEPS = 4  # steps to compile one character
PATTERN_STEPS = 2000  # steps to compile a pattern
MOST_TEXT = 4096  # characters of one expression
CHARACTERS_A_STEP = 64
ELEMENTS_A_STEP = 8
FAILURE_STEPS = 8  # steps for a part that fails, after which the evaluation goes on with the next part
REMEDY = "Loop over shorter lists, do not nest loops, or do the work in the job."


class EvaluationError(Exception):
    """An expression cannot be computed from its variables' values. `&&`, `||` and loops may ignore it."""


class MissingName(EvaluationError):
    """A name or a member does not exist."""


class OverBudget(Exception):
    """Expressions took more steps than allowed. No operator ignores this error."""

    def __init__(self, most: int) -> None:
        self.most = most
        super().__init__(f"it takes more than {most} steps to compute")


class Meter:
    """A counter of the remaining steps."""

    __slots__ = ("left", "most", "over")

    def __init__(self, most: int = MOST_STEPS) -> None:
        self.left = self.most = most
        # The error text of the first expression that exceeded the budget, and whether it is too costly even alone.
        self.over: tuple[str, bool] | None = None

    def grant(self, steps: int) -> None:
        """Allow additional steps."""
        self.left, self.most = self.left + steps, self.most + steps

    def take(self, steps: int) -> None:
        """Spend steps. Raises OverBudget when none are left."""
        self.left -= steps
        if self.left < 0:
            raise OverBudget(self.most)

    def take_text(self, length: int) -> None:
        """Spend the steps for a text of this length."""
        self.take(length // CHARACTERS_A_STEP)


class DefinitionMeter(Meter):
    """The budget to check a definition: to compile its expressions and evaluate some of them."""

    __slots__ = ()


_shared: ContextVar[Meter | None] = ContextVar("horae_expressions", default=None)


@contextmanager
def shared_budget(meter: Meter | None = None) -> Iterator[None]:
    """Give one budget to all expressions that the body evaluates. Inside another `shared_budget`, that budget applies.

    The body must not await: a task that it starts would inherit the budget.
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
def limited_budget(most: int) -> Iterator[Meter]:
    """Give the body a smaller budget of its own. The steps that it takes also count for the shared budget."""
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
def definition_budget() -> Iterator[None]:
    """Give one budget to all expressions of a definition that the body checks. Raises BadInput if they exceed it."""
    meter = DefinitionMeter(DEFINITION_STEPS)
    with shared_budget(meter):
        yield
    if meter.left < 0:
        raise BadInput("It takes too much work to check the expressions of this definition.", REMEDY)


def record_over_budget(problem: str, *, own: bool) -> None:
    """Record in the shared budget that an expression exceeded it, for callers that continue without its value.

    `problem` is the error text. `own` says that the expression is too costly even alone.
    """
    meter = _shared.get()
    if meter is not None:
        meter.over = meter.over or (problem, own)


def refuse_over_budget() -> None:
    """Raise Costly if an expression exceeded the shared budget, so that the result lacks its value."""
    meter = _shared.get()
    if meter is not None and meter.over is not None:
        problem, meter.over = meter.over[0], None
        raise Costly(problem, REMEDY)


def spend_compilation(text: str) -> None:
    """Spend the steps to compile a text, if a definition is being checked. Raises BadInput."""
    _define(COMPILE_STEPS * len(text))


def spend_pattern_compilation() -> None:
    """Spend the steps to compile a pattern, if a definition is being checked. Raises BadInput."""
    _define(PATTERN_STEPS)


def _define(steps: int) -> None:
    meter = _shared.get()
    if isinstance(meter, DefinitionMeter):
        try:
            meter.take(steps)
        except OverBudget:
            raise BadInput("This definition has too many and too long expressions.", REMEDY) from None


def current_meter() -> Meter:
    """Return the budget of the current work, or a new one."""
    return _shared.get() or Meter()
