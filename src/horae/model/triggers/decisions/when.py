"""A trigger as a job has it: its name, what it is, by which rules, and what its executions are given."""

from typing import Any

from msgspec import Struct

from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Trigger

SCHEDULE = "schedule"  # the name of the trigger that a job's `schedule` stands for


class When(Struct, frozen=True, kw_only=True):
    """One named trigger of a job.

    `params` go over those of the job and may hold templates. `paused` says how it begins: pausing and resuming it
    later is no change of the definition, so that applying a file again does not undo what an operator did.
    """

    name: str = SCHEDULE
    trigger: Trigger
    rules: Rules = Rules()
    params: dict[str, Any] = {}
    paused: bool = False

    def is_like(self, other: "When") -> bool:
        """Whether both fire at the same instants with the same outcome, however they began."""
        return (self.trigger, self.rules, self.params) == (other.trigger, other.rules, other.params)
