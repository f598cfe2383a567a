"""A trigger of a job: its name, its definition, its rules, and the params of its executions."""

from typing import Annotated, Any

import msgspec
from msgspec import Struct

from horae.errors import BadInput
from horae.model.executions.parcel import check_item
from horae.model.fields.kinds import Custom, Flag, Name
from horae.model.fields.table import Table
from horae.model.fields.values import an_object
from horae.model.triggers.decisions.fields import TriggerField
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Trigger

SCHEDULE = "schedule"  # the name of the trigger from a job's `schedule` field


def _read_params(value: Any, at: str) -> dict[str, Any]:
    params = an_object(value, at, 'Write an object such as {"day": "${fire.at}"}.')
    try:
        check_item(msgspec.json.encode(params), at)
    except (TypeError, ValueError):
        raise BadInput(f"{at} is not JSON.", "Use texts, numbers, lists and objects.", field=at) from None
    return params


PARAMS = Custom(_read_params, dict[str, Any], "Mapping[str, Any]", option="pairs")


class NamedTrigger(Struct, frozen=True, kw_only=True):
    """One named trigger of a job.

    `params` override those of the job and may use templates. `paused` is the initial state only: pausing and resuming
    later does not change the definition, so applying a file again does not undo an operator's action.
    """

    name: Annotated[
        str, TriggerField(Name(), "Its name among the job's triggers; its kind by default.", example="nightly")
    ] = SCHEDULE
    trigger: Trigger
    rules: Rules = Rules()
    params: Annotated[
        dict[str, Any],
        TriggerField(
            PARAMS,
            "Params that override those of the job, with templates.",
            example={"day": "${fire.at}"},
            flag="param",
        ),
    ] = {}
    paused: Annotated[bool, TriggerField(Flag(), "Whether it begins paused.")] = False

    def is_like(self, other: "NamedTrigger") -> bool:
        """Return whether both have the same definition, rules and params. Name and initial state are ignored."""
        return (self.trigger, self.rules, self.params) == (other.trigger, other.rules, other.params)


NAMED_TRIGGER = Table(NamedTrigger, "A trigger")
