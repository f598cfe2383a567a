"""A workflow's definition: its steps, their order, and their waits.

A workflow is the task of a job, like commands, functions and requests. Its time limit is its job's `timeout`.
"""

from typing import Annotated, Any, Literal, get_args

from msgspec import field

from horae.errors import BadInput
from horae.model.fields.kinds import Choice, Custom, Flag, Integer, as_given
from horae.model.fields.table import Field, Group
from horae.model.fields.values import a_list, an_object, refuse_unknown
from horae.model.workflows.kinds import AFTER, CONDITION, StepField, WorkflowPart, read_condition, read_names
from horae.model.workflows.repeats import EVERY, FOREACH, LOOP, RUNS, Foreach, Loop
from horae.model.workflows.waits import APPROVAL, CALLBACK, EVENT, SIGNAL, SLEEP, WAIT, Wait

OnError = Literal["fail", "finish", "ignore"]
ON_ERROR: tuple[OnError, ...] = get_args(OnError)
JoinRule = Literal[
    "allSuccess",
    "allDone",
    "oneSuccess",
    "oneFailed",
    "noneFailed",
    "noneFailedOneSuccess",
    "allFailed",
    "allSkipped",
    "always",
]
JOINS: tuple[JoinRule, ...] = get_args(JoinRule)
Phase = Literal["main", "onSuccess", "onFailure", "finally", "undo"]
PHASES: tuple[Phase, ...] = ("main", "onSuccess", "onFailure", "finally")  # the phases of a definition
MOST_STEPS = 1_000  # steps of one workflow, including its handlers
MOST_BRANCHES = 64
_SWITCH = 'Write [{"when": "${steps.check.result.ok}", "then": ["load"]}, {"else": ["report"]}].'
_OBJECT = dict[str, Any]

# Parsed and formatted by reading/steps.py and reading/workflow.py, since a step has fields of a job.
CALL, UNDONE = Group(), Group()
JOB = Custom(as_given, str, "str")
STEPS = Custom(as_given, list[_OBJECT], "Sequence[Mapping[str, Any]]", option="repeated")
PARAMS = Custom(as_given, _OBJECT, "Mapping[str, Any]")
UNDOING = Custom(as_given, str | _OBJECT)
OUTPUT = Custom(as_given, Any)


class Call(WorkflowPart, frozen=True, kw_only=True):
    """The work of a step: a job that exists by itself, or a job that the workflow owns for this step.

    `own` defines an owned job in the API's spelling: with an inline task, or by the fields that differ from those of
    `job`. If `own` has fields, the step runs the job `owned`, which is created and updated with the workflow.
    """

    # The job's name as the user gives it; its id when the workflow is stored.
    job: Annotated[
        str, CALL, StepField(JOB, "It runs this job.", example="load-orders", sdk=False, does=True, of_job=True)
    ] = ""
    own: Annotated[
        dict[str, Any],
        CALL,
        StepField(
            STEPS,
            "It runs a nested workflow with these steps.",
            name="steps",
            example=[{"name": "load", "job": "load-orders"}],
            sdk=False,
            does=True,
            of_job=True,
        ),
    ] = field(default_factory=dict)
    owned: str = ""  # the id of the job owned by the workflow; empty until it is stored, or without `own`
    version: int = 0  # the version of an inline job; 0 for the current one
    params: Annotated[
        dict[str, Any] | None,
        CALL,
        StepField(
            PARAMS, "The params of its execution, with expressions.", example={"day": "${params.day}"}, of_job=True
        ),
    ] = None

    @property
    def runs(self) -> str:
        """The id of the job that the step executes; empty if it executes none."""
        return self.owned or self.job

    @property
    def inline(self) -> bool:
        """True if its job is defined only here."""
        return bool(self.own) and not self.job


class Branch(WorkflowPart, frozen=True, kw_only=True):
    """Steps that run if no earlier branch was chosen and the condition `when` holds or is empty."""

    when: str = ""
    then: tuple[str, ...]


def _read_switch(value: Any, at: str) -> tuple[Branch, ...]:
    listed = a_list(value, at, _SWITCH, MOST_BRANCHES)
    if not listed:
        raise BadInput(f"{at} has no branch.", _SWITCH, field=at)
    return tuple(_read_branch(one, f"{at}[{i}]", i == len(listed) - 1) for i, one in enumerate(listed))


def _read_branch(value: Any, at: str, is_last: bool) -> Branch:
    given = an_object(value, at, _SWITCH)
    refuse_unknown(given, ("when", "then", "else"), "A branch", f"{at}.")
    if "else" in given:
        if not is_last or len(given) > 1:
            raise BadInput("else must be the last branch, without other fields.", _SWITCH, field=at)
        return Branch(then=read_names(given["else"], f"{at}.else"))
    if "when" not in given or "then" not in given:
        raise BadInput(f"{at} needs when and then.", _SWITCH, field=at)
    return Branch(when=read_condition(given["when"], f"{at}.when"), then=read_names(given["then"], f"{at}.then"))


def _write_switch(branches: tuple[Branch, ...]) -> list[dict[str, Any]]:
    return [
        {"when": branch.when, "then": list(branch.then)} if branch.when else {"else": list(branch.then)}
        for branch in branches
    ]


SWITCH = Custom(_read_switch, list[_OBJECT], "Sequence[Mapping[str, Any]]", _write_switch, option="repeated")


class WorkflowStep(Call, frozen=True, kw_only=True):
    """A node of a workflow.

    It runs a job (once, per item, or in a loop), waits for something, or chooses a branch.
    """

    name: Annotated[str, StepField(JOB, "Its name, unique in the workflow.", example="load")]
    # The step also runs after the steps that its expressions refer to.
    after: Annotated[tuple[str, ...], StepField(AFTER, "Steps that must end before it.", example=["extract"])] = ()
    when: Annotated[str, StepField(CONDITION, "A condition; if it does not hold, the step is skipped.")] = ""
    join: Annotated[JoinRule, StepField(Choice(JOINS), "The condition on the outcomes of the steps before it.")] = (
        "allSuccess"
    )
    foreach: Annotated[
        Foreach | None, StepField(FOREACH, "One execution for each item of a list.", sdk=False, of_job=True)
    ] = None
    loop: Annotated[
        Loop | None,
        LOOP,
        StepField(CONDITION, "It runs again as long as this holds before a run.", name="while", of_job=True),
        StepField(CONDITION, "It runs again until this holds after a run.", name="until", of_job=True),
        StepField(EVERY, "The span from the end of a run to the next.", name="every", example="10s", of_job=True),
        StepField(RUNS, "The loop fails after this many runs; 100 by default.", name="maxRuns", of_job=True),
    ] = None
    wait: Annotated[
        Wait | None,
        WAIT,
        StepField(SLEEP, "It waits for a span or until an instant.", name="sleep", example="5m", sdk=False, does=True),
        StepField(EVENT, "It waits for an event.", name="event", example="payment", sdk=False, does=True),
        StepField(SIGNAL, "It waits for a signal.", name="signal", example="go", sdk=False, does=True),
        StepField(
            APPROVAL,
            "It waits for an approval.",
            name="approval",
            example={"roles": ["operator"], "timeout": "2d"},
            sdk=False,
            does=True,
        ),
        StepField(
            CALLBACK, "It waits until its own URL is called.", name="callback", example=True, sdk=False, does=True
        ),
    ] = None
    switch: Annotated[
        tuple[Branch, ...],
        StepField(
            SWITCH,
            "It chooses the steps that run next.",
            example=[{"when": "${params.total > 100}", "then": ["ask"]}, {"else": ["ship"]}],
            sdk=False,
            does=True,
        ),
    ] = ()
    priority: Annotated[
        int | None, StepField(Integer(0, 9), "Its priority; by default, the priority of the workflow.", of_job=True)
    ] = None
    ignore_failure: Annotated[bool, StepField(Flag(), "Whether its failure counts as a success without a result.")] = (
        False
    )
    undo: Annotated[
        Call | None,
        UNDONE,
        StepField(UNDOING, "The job that undoes it when the workflow fails.", example="remove-orders", of_job=True),
    ] = None


class Workflow(WorkflowPart, frozen=True, kw_only=True, tag_field="kind", tag="workflow"):
    """A graph of steps, and handlers that run after it."""

    steps: Annotated[tuple[WorkflowStep, ...], Group(), Field(STEPS, "The steps.", sdk=False)]
    on_error: Annotated[OnError, Field(Choice(ON_ERROR), "The policy for the other steps when a step fails.")] = "fail"
    # If it is None, the result consists of the results of the last steps.
    output: Annotated[
        Any, Field(OUTPUT, "The result, with expressions.", example="${steps.load.result}", sdk=False)
    ] = None
    on_success: Annotated[
        tuple[WorkflowStep, ...], Group(), Field(STEPS, "Steps that run when it has succeeded.", sdk=False)
    ] = ()
    on_failure: Annotated[
        tuple[WorkflowStep, ...], Group(), Field(STEPS, "Steps that run when it has failed.", sdk=False)
    ] = ()
    last: Annotated[
        tuple[WorkflowStep, ...],
        Group(),
        Field(STEPS, "Steps that run at the end, in any case.", name="finally", sdk=False),
    ] = ()

    def of(self, phase: Phase) -> tuple[WorkflowStep, ...]:
        """Return the steps of a phase in definition order."""
        phases: dict[Phase, tuple[WorkflowStep, ...]] = {
            "main": self.steps,
            "onSuccess": self.on_success,
            "onFailure": self.on_failure,
            "finally": self.last,
        }
        return phases.get(phase, ())

    @property
    def everything(self) -> tuple[WorkflowStep, ...]:
        """The steps of all phases."""
        return (*self.steps, *self.on_success, *self.on_failure, *self.last)


UNDO = ":undo"


def undo_name(step: str) -> str:
    """Return the name under which the undo step of a step is stored; a user cannot give a step such a name."""
    return f"{step}{UNDO}"
