"""Bodies of submissions: one execution, many of one job, or many."""

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Raw

from horae.model.fields.derived import decoded
from horae.model.fleet.submit import SUBMISSION
from horae.server.reading.bodies import RequestBody

MOST_ITEMS = 10_000  # in one bulk submission
TERMS = tuple(row for row in SUBMISSION.rows if row.attribute != "job")  # the options of an execution
Job = Annotated[str, Meta(min_length=1, max_length=128, description=SUBMISSION["job"].field.help)]

if TYPE_CHECKING:  # for type checkers: the fields used in Python

    class Trigger(RequestBody, frozen=True, kw_only=True):
        params: Raw = Raw()
        key: str | None = None
        propagate: bool = True
        wait_for_dependencies: bool = False
else:
    Trigger = decoded(TERMS, "Trigger", "Options of a submission, such as params; all are optional.", RequestBody)


class ExecutionBody(Trigger, frozen=True, kw_only=True):
    """A submission of one execution."""

    job: Job


class ManyOfOneJob(Trigger, frozen=True, kw_only=True):
    """Many executions of one job. `items` are their params; the other fields are common to all of them."""

    job: Job
    items: Annotated[list[dict[str, Any]], Meta(min_length=1, max_length=MOST_ITEMS)]
    atomic: Annotated[
        bool, Meta(description="Accept all items or none; otherwise each item is accepted or refused by itself.")
    ] = False


class ManyExecutions(RequestBody, frozen=True, kw_only=True):
    """Many executions, each with its own options."""

    items: Annotated[list[ExecutionBody], Meta(min_length=1, max_length=MOST_ITEMS)]
    atomic: bool = False


class SubmissionBody(Trigger, frozen=True, kw_only=True):
    """A submission in any of the three forms."""

    job: Job | None = None
    items: list[Raw] | None = None
    atomic: bool = False
