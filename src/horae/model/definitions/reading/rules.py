"""Rules across the fields of a job: combinations that are refused, in this order."""

from collections.abc import Callable

from horae.errors import BadInput
from horae.model.admission.limits import check_limits
from horae.model.definitions.job import Spec
from horae.model.definitions.tasks import PythonTask
from horae.model.tenancy.read_secrets import check_references

_ONE_OF = "Leave one of them out: both say what becomes of a submission that is like one before."
_IN_ORDER = "Leave one of them out: a sequence runs every submission, in its order, and does not join any."
_APART = (
    ("debounce", "batch"), ("unique", "debounce"), ("unique", "batch"), ("cache", "debounce"), ("cache", "batch"),
    ("sequence", "debounce"), ("sequence", "batch"),
)  # fmt: skip


def check_exclusive(spec: Spec) -> None:
    """Refuse two fields that each decide the fate of a submission."""
    for one, other in _APART:
        if getattr(spec, one) and getattr(spec, other):
            remedy = _IN_ORDER if one == "sequence" else _ONE_OF
            raise BadInput(f"A job cannot have {one} and {other}.", remedy, field=other)


def check_keys(spec: Spec) -> None:
    """Refuse limits that contradict each other or the sequence."""
    check_limits(spec.limits, spec.sequence)


def check_interruption(spec: Spec) -> None:
    """Refuse a job that would have to restart but must not, or to wait but cannot."""
    once = spec.delivery == "at-most-once"
    refusals = (
        (
            spec.preemptible and not spec.interruptible,
            "A job cannot be preemptible and not interruptible.",
            'Leave "preemptible" out to let it run to its end, or "interruptible".',
            "preemptible",
        ),
        (
            spec.preemptible and once,
            "An at-most-once job cannot be preempted: it would have to begin again.",
            'Leave "preemptible" or "delivery" out.',
            "preemptible",
        ),
        (
            spec.durable and not isinstance(spec.task, PythonTask),
            "Only functions can be durable.",
            'Leave "durable" out; a command keeps checkpoints without it: `horae report --checkpoint`.',
            "durable",
        ),
        (
            spec.durable and once,
            "An at-most-once job cannot be durable: to go on after a wait it has to begin again.",
            'Leave "durable" or "delivery" out; steps that are remembered are not repeated anyway.',
            "durable",
        ),
    )
    for is_so, detail, remedy, field in refusals:
        if is_so:
            raise BadInput(detail, remedy, field=field)


def check_delivery(spec: Spec) -> None:
    """Refuse retries of a job that must not be retried."""
    if spec.delivery == "at-most-once" and spec.retry.most_tries:
        raise BadInput(
            f"An at-most-once job is never tried again, but retries is {spec.retry.most_tries}.",
            'Set "retries": 0, or leave "delivery" out.',
            field="retries",
        )


RULES: tuple[Callable[[Spec], None], ...] = (
    check_exclusive, check_keys, check_interruption, check_delivery, check_references,
)  # fmt: skip
