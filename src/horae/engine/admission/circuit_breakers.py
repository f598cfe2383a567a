"""Circuit breakers: users list them, and open, close or reset them by hand.

While a circuit is open, no execution of its job, or of its key, starts.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from horae.engine.admission.circuit_monitor import CircuitMonitor
from horae.engine.base.refs import find_job
from horae.env import Env
from horae.errors import BadInput, Conflict
from horae.model.admission.circuit import CIRCUIT, NO_USER, AttemptCounts, Circuit, CircuitChange, CircuitStatus
from horae.model.admission.circuit_view import CircuitChangeView, CircuitView, JobCircuitView, show_circuit
from horae.model.base.duration import parse_duration
from horae.model.base.instant import format_instant
from horae.model.base.key_templates import MOST_KEY
from horae.model.definitions.job import Job
from horae.model.fields.values import a_text
from horae.store.admission import circuit_reads, circuits
from horae.store.admission.circuits import CircuitRef
from horae.store.contract import Store

MOST_SHOWN = 200  # circuits in one answer
MOST_CHANGES = 50  # changes in one answer: the latest ones
MOST_REASON = 256  # characters


class CircuitBreakers:
    """Lists circuits and changes them by hand.

    `ref` is a job's name or id. A job has either one circuit, or one for each value of the circuit's key template;
    then `key` is such a value.
    """

    def __init__(self, env: Env, store: Store, monitor: CircuitMonitor) -> None:
        self._env, self._store, self._monitor = env, store, monitor

    async def list(self, namespace: int) -> list[CircuitView]:
        """Return the circuits of a namespace that are not closed, at most MOST_SHOWN."""
        found = await self._store.read(lambda: circuit_reads.shut_in(namespace, MOST_SHOWN))
        names = {status.job: name for status, name in found}
        return await self._views([status for status, _ in found], names)

    async def show(self, namespace: int, ref: str, key: str | None = None) -> JobCircuitView:
        """Return a job's circuits. Raises NotFound, or Conflict when the job has none."""
        job, circuit = await self._find(namespace, ref)
        found = await self._store.read(lambda: circuit_reads.of_job(job.id, MOST_SHOWN))
        wanted = key if circuit.key is not None else ""
        if wanted is not None:
            circuit_ref = job.id, wanted
            found = [await self._store.read(lambda: circuit_reads.status_of(circuit_ref))]
        history = await self._store.read(lambda: circuit_reads.changes_of(job.id, MOST_CHANGES))
        return JobCircuitView(
            job_id=job.id,
            job=job.name,
            definition=CIRCUIT.write(circuit),
            circuits=await self._views(found, {job.id: job.name}),
            changes=[
                CircuitChangeView(
                    key=change.key or None, at=format_instant(change.at), state=change.state, forced=change.forced,
                    cause=change.cause, changed_by=None if change.by == NO_USER else change.by,
                )
                for change in history
                if key is None or change.key == key
            ],
        )  # fmt: skip

    async def open(
        self, namespace: int, ref: str, *, by: str, key: str | None = None, reason: str = "", length: object = None
    ) -> CircuitView:
        """Open a circuit by hand, so that nothing starts until it is reset or `length` (a duration) is over."""
        span = None if length is None else parse_duration(length, field="for")  # type: ignore[arg-type]
        until = None if span is None else self._env.now() + span
        return await self._force(namespace, ref, key, CircuitChange("open", _reason(reason), until), by)

    async def close(
        self, namespace: int, ref: str, *, by: str, key: str | None = None, reason: str = ""
    ) -> CircuitView:
        """Close a circuit by hand, so that it stays closed regardless of failures until it is reset."""
        return await self._force(namespace, ref, key, CircuitChange("closed", _reason(reason)), by)

    async def reset(
        self, namespace: int, ref: str, *, by: str, key: str | None = None, reason: str = ""
    ) -> CircuitView:
        """Close a circuit, restart its counts, and end the effect of a manual change."""
        return await self._force(namespace, ref, key, None, by, _reason(reason))

    async def _force(
        self, namespace: int, ref: str, key: str | None, change: CircuitChange | None, by: str, cause: str = ""
    ) -> CircuitView:
        job, circuit = await self._find(namespace, ref)
        circuit_ref: CircuitRef = job.id, _key(circuit, key)
        after = await self._store.change(lambda now: circuits.force(circuit_ref, change, by, now, cause))
        await self._monitor.publish([after])
        await self._monitor.refresh()
        (shown,) = await self._views([after], {job.id: job.name})
        return shown

    async def _views(self, found: Sequence[CircuitStatus], names: Mapping[UUID, str]) -> "list_of[CircuitView]":
        now = self._env.now()
        settings = await self._store.read(lambda: circuits.settings_of({status.job for status in found}))
        sums = await self._store.read(lambda: circuits.sums_of(found, settings, now))
        waiting = await self._store.read(
            lambda: circuit_reads.waiting_at([(status.job, status.key) for status in found])
        )
        return [
            show_circuit(
                status,
                names[status.job],
                sums.get((status.job, status.key), AttemptCounts()),
                waiting.get((status.job, status.key), 0),
            )
            for status in found
        ]

    async def _find(self, namespace: int, ref: str) -> tuple[Job, Circuit]:
        job = (await find_job(self._store, namespace, ref)).job
        if job.spec.circuit is None:
            remedy = 'Give it one: `horae jobs edit NAME --circuit 50%`, or {"circuit": {"failures": "50%"}}.'
            raise Conflict(f'Job "{job.name}" has no circuit.', remedy)
        return job, job.spec.circuit


list_of = list  # inside the class, `list` is its method


def _reason(text: str) -> str:
    return a_text(text, "reason", most=MOST_REASON)


def _key(circuit: Circuit, key: str | None) -> str:
    """Return the key of the circuit that a request names. Raises BadInput when it is missing or not needed."""
    if circuit.key is None:
        if key:
            raise BadInput("The job has one circuit, not one for each key.", "Remove `key`.", field="key")
        return ""
    if key is None:
        raise BadInput(
            f'The job has a circuit for each value of "{circuit.key}".', "Give the `key` of the circuit.", field="key"
        )
    return a_text(key, "key", most=MOST_KEY)
