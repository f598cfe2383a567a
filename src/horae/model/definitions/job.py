"""A job: a named, versioned definition of a task, with its triggers, limits and failure handling."""

from collections.abc import Iterator, Mapping
from typing import Literal
from uuid import UUID

from msgspec import Struct

from horae.env import Instant
from horae.model.admission.keys import encode_keys, keys_of_job
from horae.model.admission.placement.placement import Cost, encode_needs
from horae.model.definitions.spec_fields import SpecFields
from horae.model.definitions.tasks import CommandTask, HttpTask, PythonTask
from horae.model.definitions.timeouts import AttemptTimeouts, ParcelTimeouts
from horae.model.fields.table import Table
from horae.model.tenancy.secret_refs import SEALED, TAKES_SECRETS, references_in_all, texts_in
from horae.model.triggers.dependency import Condition
from horae.model.workflows.decisions.values import Workflow

STEADY = "steady:"  # capability of workers that are not labelled spot; no label has this form

JobState = Literal["active", "paused", "deleted"]
TAG = "\t"  # encloses each tag; tabs in other texts are replaced


class Spec(SpecFields, frozen=True, kw_only=True):
    """The definition of a job as users write it; each edit makes a new version."""

    @property
    def keys(self) -> str | None:
        """Return the envelope keys that depend only on the job."""
        return encode_keys(keys_of_job(self.preempts, self.preemptible))

    @property
    def words(self) -> str:
        """Return the text in which searches for jobs look."""
        return searchable_text(self.name, self.description, self.tags)

    @property
    def conditions_by_job(self) -> dict[UUID, Condition]:
        """Return the condition for each job that it depends on."""
        return {UUID(job): self.conditions.get(job, "success") for job in self.dependencies}

    @property
    def deduplicates(self) -> bool:
        """Return whether submissions of the job can be joined or answered by earlier ones."""
        return any((self.unique, self.debounce, self.batch, self.cache))

    @property
    def attempt_timeouts(self) -> AttemptTimeouts:
        """Return how long a worker may hold one of its executions."""
        run = None if self.timeout is None else self.timeout + self.grace
        bounds = self.timeouts
        return AttemptTimeouts(start=bounds.start, run=run, heartbeat=bounds.heartbeat, total=self.retry.within)

    @property
    def parcel_timeouts(self) -> ParcelTimeouts | None:
        """Return how long its executions may wait in the queue, and how long all their attempts together may take."""
        queue, total = self.timeouts.queue, self.retry.within
        return None if queue is None and total is None else ParcelTimeouts(queue=queue, total=total)

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Return the capabilities that a worker needs: labels and, for functions, the function itself."""
        steady = () if self.interruptible else (STEADY,)
        discreet = (*((TAKES_SECRETS,) if self.references else ()), *((SEALED,) if self.sensitive else ()))
        if isinstance(self.task, PythonTask):
            return tuple(sorted({*self.needs, *steady, *discreet, f"function:{self.task.function}"}))
        # No worker has the capability "kind:workflow", because workflows run in the servers.
        kinds = ((CommandTask, "command"), (HttpTask, "http"), (Workflow, "workflow"))
        kind = next(word for task, word in kinds if isinstance(self.task, task))
        return tuple(sorted({*self.needs, *steady, *discreet, f"kind:{kind}"}))

    @property
    def references(self) -> tuple[str, ...]:
        """Return the secrets that its executions receive, without `secret://`."""
        return references_in_all(self.secrets, self._texts())

    def _texts(self) -> Iterator[tuple[str, str]]:
        """Yield every text in which secrets are filled in, with its field."""
        for name, text in self.env.items():
            yield text, f"env.{name}"
        if isinstance(self.task, HttpTask):
            yield self.task.url, "http.url"
            for name, text in self.task.headers.items():
                yield text, f"http.headers.{name}"
            yield from texts_in(self.task.body, "http.body")

    @property
    def cost(self) -> Cost:
        """Return the slots and resources that an execution takes of its worker."""
        return Cost(self.slots, tuple(sorted(self.resources.items())))

    @property
    def lane_needs(self) -> tuple[str, ...]:
        """Return the needs of its lane: capabilities, costs, preferences."""
        asked = encode_needs(self.cost, self.prefers, self.affinity, self.name if self.spread else "")
        return tuple(sorted({*self.capabilities, *asked}))


JOB = Table(Spec, "A job")


class Job(Struct, frozen=True, kw_only=True):
    """A job with its current version's spec."""

    id: UUID
    namespace: int
    name: str
    version: int
    state: JobState
    spec: Spec
    created_at: Instant
    updated_at: Instant


class JobVersion(Struct, frozen=True, kw_only=True):
    """One immutable version of a job's definition."""

    job: UUID
    version: int
    spec: Spec
    created_at: Instant


def searchable_text(name: str, description: str, tags: Mapping[str, str]) -> str:
    """Return a job's search text: its name, description and tags in lower case, then its tags unchanged.

    The text is stored, so that many jobs can be searched without reading their definitions.
    """
    spelled = [f"{name}={value}" for name, value in tags.items()]
    said = "\n".join((name, description, *spelled)).lower().replace(TAG, " ")
    return said + "".join(f"{TAG}{one}{TAG}" for one in spelled)


def search_pattern(text: str) -> str:
    """Return the text that must occur in a job's search text if a user searches for `text`."""
    return text.lower().replace(TAG, " ")


def tag_pattern(name: str, value: str | None) -> str:
    """Return the text that occurs in the search texts of jobs with a tag, with any value or with this value."""
    return f"{TAG}{name}={'' if value is None else value + TAG}"
