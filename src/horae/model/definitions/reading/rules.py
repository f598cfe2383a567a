"""Rules across the fields of a job: combinations that are refused. `RULES` gives their order."""

from collections.abc import Callable, Iterable

from horae.errors import BadInput
from horae.model.admission.limits import check_limits
from horae.model.definitions.job import Spec
from horae.model.definitions.tasks import CommandTask, PythonTask
from horae.model.tenancy.secret_refs import MOST_SECRETS, SCHEME, texts_in
from horae.model.triggers.decisions.external import EventTrigger
from horae.model.triggers.decisions.named_trigger import NamedTrigger
from horae.model.workflows.decisions.values import Workflow

_ONE_OF = "Remove one of them: both decide about a submission that repeats an earlier one."
_IN_ORDER = "Remove one of them: a sequence runs every submission, in order, and joins none."
_APART = (
    ("debounce", "batch"), ("unique", "debounce"), ("unique", "batch"), ("cache", "debounce"), ("cache", "batch"),
    ("sequence", "debounce"), ("sequence", "batch"),
)  # fmt: skip
_ARGV = (
    'Arguments are seen by everybody on the machine: put it into env, as {"TOKEN": "secret://token"}, and let the'
    " program read $TOKEN there."
)
_PARAMS = "In a command, read it from env. In a function, name it in `secrets` and call ctx.secret(NAME)."


def check_exclusive(spec: Spec) -> None:
    """Refuse two fields that would both decide what happens to a submission."""
    for one, other in _APART:
        if getattr(spec, one) and getattr(spec, other):
            remedy = _IN_ORDER if one == "sequence" else _ONE_OF
            raise BadInput(f"A job cannot have {one} and {other}.", remedy, field=other)


def check_keys(spec: Spec) -> None:
    """Refuse limits that contradict each other or the sequence."""
    check_limits(spec.limits, spec.sequence)


def check_interruption(spec: Spec) -> None:
    """Refuse a job that would have to start again but must not, and a durable job that is not a function."""
    once = spec.delivery == "at-most-once"
    refusals = (
        (
            spec.preemptible and not spec.interruptible,
            "A job cannot be preemptible and not interruptible.",
            'Remove "preemptible" to let the job run to its end, or remove "interruptible".',
            "preemptible",
        ),
        (
            spec.preemptible and once,
            "An at-most-once job cannot be preempted: it would have to begin again.",
            'Remove "preemptible" or "delivery".',
            "preemptible",
        ),
        (
            spec.durable and not isinstance(spec.task, PythonTask),
            "Only functions can be durable.",
            'Remove "durable"; a command keeps checkpoints without it: `horae report --checkpoint`.',
            "durable",
        ),
        (
            spec.durable and once,
            "An at-most-once job cannot be durable: to go on after a wait it has to begin again.",
            'Remove "durable" or "delivery"; a durable job does not repeat its finished steps.',
            "durable",
        ),
    )
    for is_so, detail, remedy, field in refusals:
        if is_so:
            raise BadInput(detail, remedy, field=field)


def check_delivery(spec: Spec) -> None:
    """Refuse retries of a job that must not be retried."""
    if spec.delivery != "at-most-once" or not spec.retry.most_tries:
        return
    if spec.retry.retries:
        detail = f"An at-most-once job is never tried again, but retries is {spec.retry.retries}."
        raise BadInput(detail, 'Set "retries": 0, or remove "delivery".', field="retries")
    detail = "An at-most-once job is never tried again, but retry.budgets allows further tries."
    raise BadInput(detail, 'Remove "budgets" or "delivery".', field="retry.budgets")


def check_references(spec: Spec) -> None:
    """Refuse references in places where they would not be filled in, or would be exposed."""
    if isinstance(spec.task, CommandTask):
        _refuse_seen(spec.task)
    if any(SCHEME in text for text, _ in texts_in(spec.params, "params")):
        raise BadInput("params refer to a secret, and secrets are not filled into params.", _PARAMS, field="params")
    if spec.secrets and not isinstance(spec.task, PythonTask):
        remedy = "Put secret://NAME into env of a command, or into url, headers or body of an http job."
        detail = "The field secrets is for functions, which read secrets with ctx.secret."
        raise BadInput(detail, remedy, field="secrets")
    count = len(spec.references)
    if count > MOST_SECRETS:
        detail = f"The job refers to {count} secrets."
        raise BadInput(detail, f"At most {MOST_SECRETS} are allowed.", field="secrets")


def _refuse_seen(task: CommandTask) -> None:
    texts = [(word, f"command[{i}]") for i, word in enumerate(task.argv)]
    texts += [(task.shell or "", "command.shell"), (task.cwd or "", "command.cwd")]
    for text, field in texts:
        if SCHEME in text:
            raise BadInput(f"{field} refers to a secret.", _ARGV, field=field)


RULES: tuple[Callable[[Spec], None], ...] = (
    check_exclusive, check_keys, check_interruption, check_delivery, check_references,
)  # fmt: skip


def check_sensitive(spec: Spec, whens: Iterable[NamedTrigger]) -> None:
    """Refuse features for which the store would have to read sealed values, or would store them unsealed."""
    if not spec.sensitive:
        return
    refusals = (
        (isinstance(spec.task, Workflow), "a workflow: its steps read its params", "Mark the jobs of its steps."),
        (spec.durable, "durable: the results of its steps are stored unsealed", "Remove one of the two."),
        (spec.batch is not None, "collected into batches", 'Remove "batch".'),
        (spec.debounce is not None, "debounced: the store would have to merge its params", 'Remove "debounce".'),
        (spec.cache is not None, "answered from a cache", 'Remove "cache".'),
        (
            any(isinstance(when.trigger, EventTrigger) for when in whens),
            "started by events, whose payloads are stored unsealed",
            "Submit it instead: POST /api/v1/executions.",
        ),
    )
    for is_so, what, remedy in refusals:
        if is_so:
            raise BadInput(f"A sensitive job cannot be {what}.", remedy, field="sensitive")
