"""Gates: all conditions that can keep an execution, or a job, from starting, in the order in which they are checked.

To add a gate, add it to `GATES`, and a probe under its name in `engine/executions/probes`. Every reason for which a
slice waits belongs to a gate. Every condition by which a claim skips a slice belongs to a gate, too, and a comment in
its line names the gate: `# gate: held`. Tests check that no gate is missing. In the texts, "it" is the execution.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from horae.env import Instant
from horae.model.executions.execution import WaitReason

About = Literal["execution", "job"]
BOTH: tuple[About, ...] = ("execution", "job")


class Gate(Struct, frozen=True, kw_only=True):
    """A condition for starting: its meaning, and the event that opens it."""

    name: str
    means: str
    opens: str
    reasons: tuple[WaitReason, ...] = ()  # wait reasons of the slices at this gate
    about: tuple[About, ...] = ("execution",)


GATES: tuple[Gate, ...] = (
    Gate(
        name="delay",
        means="It is not due yet.",
        opens="It becomes due.",
        reasons=("delay",),
    ),
    Gate(
        name="retry",
        means="Its last attempt failed, and the next starts after a delay.",
        opens="The delay ends.",
        reasons=("retry",),
    ),
    Gate(
        name="sleep",
        means="It has started, and waits without a worker: for a time, a signal, or its children.",
        opens="The time is over, the signal arrives, or the children end.",
        reasons=("sleep", "children", "signal"),
    ),
    Gate(
        name="dependency",
        means="A job that it depends on has not ended with the required result.",
        opens="That job ends with this result, or the timeout for dependencies is over.",
        reasons=("dependency",),
    ),
    Gate(
        name="window",
        means="It waits for more submissions to join it: its job has debounce or batch.",
        opens="No more arrive for a while, or enough have arrived.",
        reasons=("debounce", "batch"),
    ),
    Gate(
        name="limit",
        means="A limit of its job is reached: as many executions as it allows for the key are queued or running.",
        opens="One of them ends or waits for a retry, or the limit is raised.",
        reasons=("limit",),
    ),
    Gate(
        name="sequence",
        means="Earlier executions in its sequence have not ended.",
        opens="These executions end.",
        reasons=("sequence",),
    ),
    Gate(
        name="rate",
        means="More executions with its key would start than the rate of a limit of its job allows.",
        opens="The rate allows its start, or is raised.",
        reasons=("rate",),
    ),
    Gate(
        name="overlap",
        means="The previous execution of the same trigger has not ended.",
        opens="That execution ends, or is cancelled.",
        reasons=("overlap",),
    ),
    Gate(
        name="paused",
        about=BOTH,
        means="The job is paused: none of its executions start, and its triggers do not fire.",
        opens="The job is resumed.",
        reasons=("paused",),
    ),
    Gate(
        name="workflow-paused",
        means="Its workflow is paused.",
        opens="The workflow is resumed.",
    ),
    Gate(
        name="circuit",
        about=BOTH,
        means="Its job, or its key, failed too often: the circuit is open, or only probes run.",
        opens="The circuit closes when probes succeed, or is reset.",
        reasons=("circuit",),
    ),
    Gate(
        name="queue-paused",
        about=BOTH,
        means="Its queue is paused.",
        opens="The queue is resumed.",
    ),
    Gate(
        name="held",
        about=BOTH,
        means="Its queue, or the whole namespace, is held, by hand or by a maintenance window.",
        opens="The hold ends or is released; the window closes or is removed.",
    ),
    Gate(
        name="queue-limit",
        means="Its queue has reached its concurrency limit or its rate, or runs in sequence.",
        opens="An execution of the queue ends, the rate allows a start, or the limit is raised.",
    ),
    Gate(
        name="namespace-limit",
        means="Its namespace has reached its concurrency limit or its rate.",
        opens="An execution of the namespace ends, the rate allows a start, or the limit is raised.",
    ),
    Gate(
        name="no-worker",
        about=BOTH,
        means="No live worker serves its queue and has what it needs: labels, its function or its kind.",
        opens="Such a worker is started.",
    ),
    Gate(
        name="no-key",
        about=BOTH,
        means="Its secrets or params are sealed, and the servers do not have the master key.",
        opens="Each server gets the master key, or a worker connects to a server that has it.",
    ),
    Gate(
        name="suspect",
        means="It was lost with its worker twice or more, and every suitable worker holds as many of these as it may.",
        opens="One of these executions ends.",
    ),
    Gate(
        name="preferred",
        means="It waits for a worker that its job prefers, or that ran its key last.",
        opens="Such a worker has a free slot, all such workers leave, or the patience of the preference ends.",
    ),
    Gate(
        name="spread",
        means="Its job is spread over workers, and the workers with free slots have their share.",
        opens="Another worker takes it; after five seconds, any worker may.",
    ),
    Gate(
        name="busy",
        means="Every suitable worker has all its slots in use.",
        opens="An execution on one of these workers ends, or another worker is started.",
    ),
    Gate(
        name="room",
        means="No suitable worker has enough free slots and resources at once.",
        opens="Enough executions on one worker end; after 30 seconds, a worker is reserved for it.",
    ),
    Gate(
        name="reserved",
        means="Every suitable worker is reserved for a large execution that was skipped for a long time.",
        opens="The large execution starts, or another worker is started.",
    ),
    Gate(
        name="other-queues",
        means="Every suitable worker serves other queues first, by its order or its weights.",
        opens="Those queues have had their turn, or a worker is started that serves this one.",
    ),
    Gate(
        name="share",
        means="Its queue is fair, and its other shares have had less service.",
        opens="The other shares have caught up, or its share gets a higher weight.",
    ),
    Gate(
        name="ahead",
        means="Other executions are before it in its queue.",
        opens="Workers have taken these executions.",
    ),
    Gate(
        name="deleted",
        about=("job",),
        means="The job is deleted.",
        opens="The job is restored.",
    ),
    Gate(
        name="no-trigger",
        about=("job",),
        means="Nothing starts the job by itself: it has no trigger, and depends on no other job.",
        opens="The job gets a trigger, or is run by hand.",
    ),
    Gate(
        name="trigger-paused",
        about=("job",),
        means="One of its triggers is paused.",
        opens="The trigger is resumed.",
    ),
    Gate(
        name="trigger-ended",
        about=("job",),
        means="One of its triggers has ended: its instants are over, or it has fired its maximum number of times.",
        opens="The trigger is changed.",
    ),
    Gate(
        name="trigger-failing",
        about=("job",),
        means="The next fire of one of its triggers cannot be computed.",
        opens="The problem is fixed; the computation is tried again every minute.",
    ),
    Gate(
        name="calendar",
        about=("job",),
        means="One of its triggers uses a calendar that is closed.",
        opens="The calendar opens, or is changed.",
    ),
    Gate(
        name="not-due",
        about=("job",),
        means="One of its triggers fires later.",
        opens="The time of that fire comes.",
    ),
    Gate(
        name="no-event",
        about=("job",),
        means="One of its triggers waits for an event, a webhook or a new file in a watched place.",
        opens="The event, the request or the file arrives.",
    ),
    Gate(
        name="upstream",
        about=("job",),
        means="The job depends on other jobs that have not ended with the required results.",
        opens="These jobs end with the required results.",
    ),
    Gate(
        name="last-decision",
        about=("job",),
        means="The last fire did not run: a calendar, overlap, misfire, pause, key or quota prevented it.",
        opens="The next fire is decided anew; missed fires can be backfilled.",
    ),
)
BY_NAME: Mapping[str, Gate] = {gate.name: gate for gate in GATES}
BY_REASON: Mapping[str, Gate] = {reason: gate for gate in GATES for reason in gate.reasons}


class Blocker(Struct, frozen=True, kw_only=True):
    """A closed gate, with an explanation, what opens it, when it opens if known, and details for programs."""

    gate: str
    message: str
    opens: str
    until: Instant | None = None
    details: Mapping[str, Any] = {}


def closed(
    gate: str, message: str, opens: str | None = None, *, until: Instant | None = None, **details: Any
) -> Blocker:
    """Return a closed gate; `opens` is by default the gate's own text. The API shows `details` as they are given."""
    return Blocker(gate=gate, message=message, opens=opens or BY_NAME[gate].opens, until=until, details=details)
