"""Resource limits of an execution in its own process, and the failures of executions that exceed them."""

import signal
from typing import Any

from msgspec import Struct

from horae.env import SECOND
from horae.model.definitions.resource_limits import NO_LIMITS, ResourceLimits
from horae.worker.code.failure import failed
from horae.worker.holding import ItemOutcome

CLOSELY = 0.1  # seconds between checks of a job with its own limits
LOOSELY = 256  # processes that the kernel allows beyond twice the limit: it stops a fork bomb sooner than the guard
SPARE = 256 << 20  # bytes that a process may reserve beyond twice its limit; the guard checks the memory in use
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "bytes"))
_WORDS = {
    "memory": "it used more than {} of memory",
    "cpu": "it used more than {} of processor time",
    "processes": "it ran more than {} processes, or too many threads, at once",
    "output": "it wrote more than {} of output",
    "fileSize": "it wrote more than {} to one file",
}
_BY_SIGNAL = {-signal.SIGXCPU: "cpu", -signal.SIGXFSZ: "fileSize"}
_NO_MEMORY = ("memory", "bad_alloc", "allocate")


class ProcessBounds(Struct, frozen=True):
    """Limits of a job's executions on this worker: `own` are those that the job sets, `all` those that apply."""

    own: ResourceLimits = NO_LIMITS
    all: ResourceLimits = NO_LIMITS

    def frame(self) -> dict[str, Any]:
        """Return the limits as fields of the frame by which the guard starts a program; empty if there are none."""
        cpu = None if self.all.cpu is None else self.all.cpu / SECOND
        watch = {"memory": self.all.memory, "processes": self.all.processes, "cpu": cpu}
        if self.own != NO_LIMITS and any(watch.values()):
            watch["every"] = CLOSELY
        rlimits = {
            "NOFILE": self.all.files,
            "FSIZE": self.all.file_size,
            "CPU": None if cpu is None else int(cpu) + 2,
            "NPROC": None if self.own.processes is None else 2 * self.own.processes + LOOSELY,
            "DATA": None if self.own.memory is None else 2 * self.own.memory + SPARE,
        }
        return {
            name: message
            for name, given in (("watch", watch), ("rlimits", rlimits))
            if (message := _without_none(given))
        }

    def failure_of(self, limit: str, seen: float | None = None, exit_code: int | None = None) -> ItemOutcome:
        """Return the failure of an execution that exceeded a limit.

        Its message has the limit, the measured amount `seen`, if known, and the setting to raise.
        """
        name = {"fileSize": "file_size"}.get(limit, limit)
        allowed = _shown(limit, getattr(self.all, name) / (SECOND if limit == "cpu" else 1))
        noticed = "" if seen is None else f" ({_shown(limit, seen)} when it was noticed)"
        setting = f"the job's limits.{limit}" if getattr(self.own, name) is not None else f"the worker's command_{name}"
        message = f"{_WORDS[limit].format(allowed)}{noticed}. Raise {setting} if that is too little"
        return failed("LimitExceeded", message, exit_code=exit_code)

    def limit_of(self, status: int) -> str:
        """Return the limit for which the kernel ended a process, by its exit status; empty if none."""
        limit = _BY_SIGNAL.get(status, "")
        limited = {"cpu": self.all.cpu, "fileSize": self.all.file_size}.get(limit)
        return limit if limited is not None else ""

    def memory_hint(self, last_words: str) -> str:
        """Return a note to add to the last output of a process, if that output says that memory was lacking."""
        if self.own.memory is None or not any(word in last_words.lower() for word in _NO_MEMORY):
            return ""
        return f" (its memory is limited to {_shown('memory', self.own.memory)} by limits.memory)"


def _shown(limit: str, amount: float) -> str:
    if limit == "cpu":
        return f"{amount:.3g} s"
    if limit == "processes":
        return f"{amount:.0f}"
    unit, name = next((unit, name) for unit, name in _UNITS if amount >= unit or unit == 1)
    return f"{amount / unit:.4g} {name}"


def _without_none(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}
