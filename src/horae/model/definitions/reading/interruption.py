"""`interruptible`, `preemptible` and `preempts`: whose place may be taken, and for whom; `durable`: who resumes."""

from typing import Any

from horae.errors import BadInput
from horae.model.fields.values import kind_of

FIELDS = ("interruptible", "preemptible", "preempts", "durable")


def read_interruption(given: dict[str, Any]) -> dict[str, Any]:
    """What a job says of being interrupted, and of interrupting others."""
    said = {name: _yes_or_no(given.get(name, name == "interruptible"), name) for name in FIELDS}
    if said["preemptible"] and not said["interruptible"]:
        raise BadInput(
            "A job cannot be preemptible and not interruptible.",
            'Leave "preemptible" out to let it run to its end, or "interruptible".',
            field="preemptible",
        )
    if said["preemptible"] and given.get("delivery") == "at-most-once":
        raise BadInput(
            "An at-most-once job cannot be preempted: it would have to begin again.",
            'Leave "preemptible" or "delivery" out.',
            field="preemptible",
        )
    if said["durable"] and "python" not in given:
        raise BadInput(
            "Only functions can be durable.",
            'Leave "durable" out; a command keeps checkpoints without it: `horae report --checkpoint`.',
            field="durable",
        )
    if said["durable"] and given.get("delivery") == "at-most-once":
        raise BadInput(
            "An at-most-once job cannot be durable: to go on after a wait it has to begin again.",
            'Leave "durable" or "delivery" out; steps that are remembered are not repeated anyway.',
            field="durable",
        )
    return said


def _yes_or_no(value: Any, field: str) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"{field} is {kind_of(value)}, neither true nor false.", "Write true or false.", field=field)
    return value
