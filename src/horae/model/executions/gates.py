"""Gates: everything that can keep an execution, or a job, from starting, in the order in which it is met.

To add a gate, add it to `GATES`, and a probe under its name in `engine/executions/probes`. Every reason for which a
slice waits belongs to a gate; so does every condition by which a claim passes something over, and its line names the
gate: `# gate: held`. Tests enumerate both.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from horae.env import Instant
from horae.model.executions.execution import WaitReason

About = Literal["execution", "job"]
BOTH: tuple[About, ...] = ("execution", "job")


class Gate(Struct, frozen=True, kw_only=True):
    """Something that starts wait at: what it is, and what opens it."""

    name: str
    means: str
    opens: str
    reasons: tuple[WaitReason, ...] = ()  # those of waiting slices that stand at it
    about: tuple[About, ...] = ("execution",)


GATES: tuple[Gate, ...] = (
    Gate(
        name="delay",
        means="It is not due yet.",
        opens="Its time comes.",
        reasons=("delay",),
    ),
    Gate(
        name="retry",
        means="Its last attempt failed, and the next begins after a pause.",
        opens="The pause ends.",
        reasons=("retry",),
    ),
    Gate(
        name="sleep",
        means="It has begun, and waits without a worker: for a time, a signal, or what it has started.",
        opens="What it waits for comes.",
        reasons=("sleep", "children", "signal"),
    ),
    Gate(
        name="dependency",
        means="A job that it depends on has not ended as it must.",
        opens="That job ends so; or the time for which it waits is over.",
        reasons=("dependency",),
    ),
    Gate(
        name="window",
        means="It waits for more submissions that it stands for, or takes in: its job has debounce or batch.",
        opens="No more come for a while, or enough have come.",
        reasons=("debounce", "batch"),
    ),
    Gate(
        name="limit",
        means="As many executions as a limit of its job allows for its key are queued or running.",
        opens="One of them ends, or waits to be tried again; or the limit is raised.",
        reasons=("limit",),
    ),
    Gate(
        name="sequence",
        means="Executions before it in its sequence have not ended.",
        opens="They end, in their order.",
        reasons=("sequence",),
    ),
    Gate(
        name="rate",
        means="More executions of its key would start than the rate of a limit of its job allows.",
        opens="Its time comes, or the rate is raised.",
        reasons=("rate",),
    ),
    Gate(
        name="overlap",
        means="The execution before it, of the same trigger, has not ended.",
        opens="That execution ends, or is cancelled.",
        reasons=("overlap",),
    ),
    Gate(
        name="paused",
        about=BOTH,
        means="The job is paused: nothing of it starts, and its triggers decide nothing.",
        opens="The job is resumed.",
        reasons=("paused",),
    ),
    Gate(
        name="workflow-paused",
        means="The workflow that it is a step of is paused.",
        opens="The workflow is resumed.",
    ),
    Gate(
        name="circuit",
        about=BOTH,
        means="Its job, or what it is about, failed too often: its circuit is open, or only probes are tried.",
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
        means="Its queue runs as many as it may at once, in its order, or has started as many as its rate allows.",
        opens="Something that runs there ends, or its time comes; or the limit is raised.",
    ),
    Gate(
        name="namespace-limit",
        means="Its namespace runs as many as it may at once, or has started as many as its rate allows.",
        opens="Something that runs there ends, or its time comes; or the limit is raised.",
    ),
    Gate(
        name="no-worker",
        about=BOTH,
        means="No live worker serves its queue and offers what it needs: labels, its function or its kind.",
        opens="Such a worker is started.",
    ),
    Gate(
        name="no-key",
        about=BOTH,
        means="It needs the master key, to open its secrets or params, and servers do not have that.",
        opens="Each server is given the master key, or a worker asks a server that has it.",
    ),
    Gate(
        name="suspect",
        means="It was lost with its worker twice or more, and each worker that fits runs as many of those as it may.",
        opens="One of those ends.",
    ),
    Gate(
        name="preferred",
        means="It waits for a worker that its job prefers, or that had its key last.",
        opens="Such a worker has a slot free, leaves, or the patience ends.",
    ),
    Gate(
        name="spread",
        means="Its job is spread over workers, and those that ask have their share.",
        opens="Others take it; after five seconds, any.",
    ),
    Gate(
        name="busy",
        means="Every worker that fits has all its slots taken.",
        opens="Something that runs there ends, or another worker is started.",
    ),
    Gate(
        name="room",
        means="No worker that fits has as many slots and as much of its resources free at once as it takes.",
        opens="Enough of what runs on one of them ends; after 30 seconds one is kept for it.",
    ),
    Gate(
        name="reserved",
        means="Every worker that fits keeps its room for something large that was passed over for long.",
        opens="That has started, or another worker is started.",
    ),
    Gate(
        name="other-queues",
        means="Every worker that fits takes from other queues first, by its order or its weights of them.",
        opens="Those queues have had their turn, or a worker is started that serves this one.",
    ),
    Gate(
        name="share",
        means="Its queue is fair, and other shares of it have had less.",
        opens="Those have had their part, or its share gets a higher weight.",
    ),
    Gate(
        name="ahead",
        means="Others stand before it in its queue.",
        opens="Those are taken.",
    ),
    Gate(
        name="deleted",
        about=("job",),
        means="The job is deleted.",
        opens="It is restored.",
    ),
    Gate(
        name="no-trigger",
        about=("job",),
        means="Nothing fires the job by itself: it has no trigger, and depends on no other job.",
        opens="It gets a trigger, or is run by hand.",
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
        means="One of its triggers fires no more: its instants are over, or it fired as often as it may.",
        opens="The trigger is changed.",
    ),
    Gate(
        name="trigger-trouble",
        about=("job",),
        means="One of its triggers cannot be decided.",
        opens="What it lacks is put right; it is tried again every minute.",
    ),
    Gate(
        name="calendar",
        about=("job",),
        means="One of its triggers goes by a calendar that is closed.",
        opens="The calendar opens, or is changed.",
    ),
    Gate(
        name="not-due",
        about=("job",),
        means="One of its triggers fires later.",
        opens="Its instant comes.",
    ),
    Gate(
        name="no-event",
        about=("job",),
        means="One of its triggers waits for an event, a webhook or something new in a place that it watches.",
        opens="That comes.",
    ),
    Gate(
        name="upstream",
        about=("job",),
        means="The job depends on others that have not ended as they must.",
        opens="They end so.",
    ),
    Gate(
        name="last-decision",
        about=("job",),
        means="The last fire that was decided did not run: a calendar, overlap, misfire, pause, key or quota kept it.",
        opens="The next fire is decided anew; what did not run can be backfilled.",
    ),
)
BY_NAME: Mapping[str, Gate] = {gate.name: gate for gate in GATES}
BY_REASON: Mapping[str, Gate] = {reason: gate for gate in GATES for reason in gate.reasons}


class Blocker(Struct, frozen=True, kw_only=True):
    """A gate that is closed: in words, until when if that is known, and what programs want to know of it."""

    gate: str
    message: str
    opens: str
    until: Instant | None = None
    details: Mapping[str, Any] = {}


def closed(
    gate: str, message: str, opens: str | None = None, *, until: Instant | None = None, **details: Any
) -> Blocker:
    """A closed gate; without words of its own it opens as all of its kind do. Details are written as they are shown."""
    return Blocker(gate=gate, message=message, opens=opens or BY_NAME[gate].opens, until=until, details=details)
