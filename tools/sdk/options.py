"""Write the keywords of decorators and of methods that take fields, as type checkers and editors see them."""

from collections.abc import Callable, Iterable
from typing import Any

from horae.model.admission.queue import QUEUE
from horae.model.admission.quota import QUOTA
from horae.model.definitions.job import JOB
from horae.model.fields.kinds import Choice
from horae.model.fields.table import Row
from horae.model.workflows.decisions.values import ON_ERROR

HEAD = '''"""Fields as keywords, of jobs and others. `python -m tools.sdk` writes this module from their tables."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from horae.model.executions.signals import Span

# A job's own rule: from (failures, error) to a span to wait, False to give up, or None for the policy's delay.
RetryFunction = Callable[[int, BaseException], Span | bool | None]
'''
OF_PROCESSES = '''    isolation: Literal["thread", "process"] | None
    """Where a sync function runs; one with a timeout runs in a process of its own unless this says otherwise."""
    process_limits: Mapping[str, Any] | None
    """What a process of its own may use: {"memory": "1GiB", "cpu": "10m"}."""
'''
OF_WORKFLOWS = f'''    on_error: {Choice(ON_ERROR).python} | None
    """What becomes of the other steps when one has failed."""
'''
BACK = "None takes a field back to its default."
TAKEN = ("batch",)  # a keyword of `@app.job` itself: with it, functions are submitted otherwise


def text() -> str:
    """Return the module."""
    return "\n".join(
        (
            HEAD,
            _of_jobs("JobOptions", "What `@app.job` takes; None stands for the default.", _in_sdk, TAKEN)
            + OF_PROCESSES,
            _of_jobs("WorkflowOptions", "What `@app.workflow` takes; None stands for the default.", _of_workflows)
            + OF_WORKFLOWS,
            _of_jobs(
                "JobFields", "What a definition says; None takes a field back to its default.", _in_rest, ("name",)
            ),
            typed("QueueFields", f"What `client.queues.set` takes; {BACK}", QUEUE.rows),
            typed("QuotaFields", "The bounds of a namespace; None stands for no bound.", QUOTA.rows),
        )
    )


def _in_rest(field: Any) -> bool:
    return True


def _in_sdk(field: Any) -> bool:
    return bool(field.sdk)


def _of_workflows(field: Any) -> bool:
    return bool(field.sdk and not field.no_workflow)


def _of_jobs(name: str, doc: str, says: Callable[[Any], bool], without: tuple[str, ...] = ()) -> str:
    made = typed(name, doc, (row for row in JOB.rows if says(row.field) and row.name not in without))
    return made.replace(" | RetryFunction", "") if says is _in_rest else made  # a function runs where it is registered


def typed(name: str, doc: str, rows: Iterable[Row], base: str = "TypedDict") -> str:
    return f'\nclass {name}({base}, total=False):\n    """{doc}"""\n\n' + "".join(map(_line, rows))


def _line(row: Row) -> str:
    type = row.kind.python
    return f'    {row.keyword}: {type if type == "Any" else f"{type} | None"}\n    """{row.field.help}"""\n'
