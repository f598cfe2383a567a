"""Generation of the keywords of decorators and methods, for type checkers and editors."""

from collections.abc import Callable, Iterable
from typing import Any

from horae.client.submission_options import OF_MANY, OF_ONE
from horae.model.admission.queue import QUEUE
from horae.model.admission.quota import QUOTA
from horae.model.definitions.job import JOB
from horae.model.fields.table import Object, Row
from horae.model.tenancy.namespace import NAMESPACE
from horae.model.workflows.reading.steps import STEP
from horae.model.workflows.reading.workflow import WORKFLOW
from horae.model.workflows.waits import APPROVAL, CALLBACK, EVENT, SIGNAL

HEAD = '''"""Fields as keywords, of jobs and others. `python -m tools.sdk` writes this module from their tables."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

from horae.model.executions.job_exceptions import Span

# A function of (failures, error) that returns a span to wait, False to give up, or None for the policy's delay.
RetryFunction = Callable[[int, BaseException], Span | bool | None]
'''
STEPS_HEAD = '''"""Fields of steps as keywords. `python -m tools.sdk` writes this module from their tables."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from horae.model.executions.job_exceptions import Span
'''
OF_PROCESSES = '''    isolation: Literal["thread", "process"] | None
    """Where a sync function runs; by default, one with a timeout runs in a separate process."""
    process_limits: Mapping[str, Any] | None
    """The limits of a separate process: {"memory": "1GiB", "cpu": "10m"}."""
'''
BACK = "None resets a field to its default."
TAKEN = ("batch",)  # a keyword of `@app.job` itself, because it changes the signature of `submit`


def text() -> str:
    """Return the content of the module."""
    of_workflows = [row for row in WORKFLOW.rows if row.field.sdk]
    return "\n".join(
        (
            HEAD,
            typed("JobOptions", "The options of `@app.job`; None stands for the default.", _jobs(_in_sdk, TAKEN))
            + OF_PROCESSES,
            typed(
                "WorkflowOptions",
                "The options of `@app.workflow`; None stands for the default.",
                [*_jobs(_of_workflows), *of_workflows],
            ),
            _declared(
                "JobFields",
                "The fields of a definition; None resets a field to its default.",
                _jobs(lambda field: True, ("name",)),
            ),
            typed("QueueFields", f"The fields of `client.queues.set`; {BACK}", QUEUE.rows),
            typed("NamespaceFields", f"The settings of a namespace; {BACK}", NAMESPACE.rows),
            typed("QuotaFields", "The bounds of a namespace; None stands for no bound.", QUOTA.rows),
            typed("SubmitOptions", "The options of a submission.", OF_ONE.values()),
            typed("BulkOptions", "The shared options of a bulk submission.", OF_MANY.values()),
        )
    )


def of_steps() -> str:
    """Return the module with the keywords of steps."""
    return "\n".join(
        (
            STEPS_HEAD,
            _declared("WaitOptions", "The options of every step.", _steps(lambda field: not field.of_job)),
            _declared(
                "StepOptions",
                "The options of a step that runs a job.",
                _steps(lambda field: field.of_job),
                "WaitOptions",
            ),
            _of_wait("EventOptions", EVENT, "filter"),
            _of_wait("SignalOptions", SIGNAL),
            _of_wait("ApprovalOptions", APPROVAL),
            _of_wait("CallbackOptions", CALLBACK),
        )
    )


def _in_sdk(field: Any) -> bool:
    return bool(field.sdk)


def _of_workflows(field: Any) -> bool:
    return bool(field.sdk and not field.no_workflow)


def _jobs(says: Callable[[Any], bool], without: tuple[str, ...] = ()) -> list[Row]:
    return [row for row in JOB.rows if says(row.field) and row.name not in without]


def _steps(says: Callable[[Any], bool]) -> list[Row]:
    return [row for row in STEP.rows if row.field.sdk and says(row.field)]


def _of_wait(name: str, wait: Object, *without: str) -> str:
    """Return the keywords of a wait; its name and its expressions are parameters of the function."""
    rows = [row for row in wait.table.rows if row.name not in ("name", *without)]
    word = name.removesuffix("Options").lower()
    return _declared(name, f"The options of `step.{word}`.", rows, "WaitOptions")


def _declared(name: str, doc: str, rows: Iterable[Row], base: str = "TypedDict") -> str:
    """Return keywords without retry functions, which work only where the function is registered."""
    return typed(name, doc, rows, base).replace(" | RetryFunction", "")


def typed(name: str, doc: str, rows: Iterable[Row], base: str = "TypedDict") -> str:
    return f'\nclass {name}({base}, total=False):\n    """{doc}"""\n\n' + "".join(map(_line, rows))


def _line(row: Row) -> str:
    spelled = row.kind.python if row.kind.python == "Any" else f"{row.kind.python} | None"
    return f'    {row.keyword}: {spelled}\n    """{row.field.help}"""\n'
