"""`limits` of a command or of a function in a process: how much an execution may use of its worker's machine."""

from typing import Any

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.admission.reading.placement import read_amount
from horae.model.base.duration import DAY, format_duration
from horae.model.definitions.confines import FREE, Confines
from horae.model.fields.values import a_duration, an_int, an_object, refuse_unknown

FIELDS = ("memory", "cpu", "files", "processes", "output", "fileSize")
LEAST_MEMORY = 1 << 20
MOST_FILES = 1 << 20
MOST_PROCESSES = 1 << 22
LIMITS = (
    'Write {"memory": "512MiB", "cpu": "30s", "files": 1024, "processes": 64, "output": "100MiB", "fileSize": "1GiB"}.'
)


def read_confines(value: Any, field: str) -> Confines:
    """The limits of an execution, or a BadInput that says which one is wrong."""
    if value is None:
        return FREE
    given = an_object(value, field, LIMITS)
    refuse_unknown(given, FIELDS, field, f"{field}.")
    said = {name: one for name, one in given.items() if one is not None}
    memory = _size(said, "memory", field)
    if memory is not None and memory < LEAST_MEMORY:
        raise BadInput(
            f"{field}.memory is {memory} bytes.", "Nothing starts in less than 1MiB.", field=f"{field}.memory"
        )
    return Confines(
        memory=memory,
        cpu=a_duration(said["cpu"], f"{field}.cpu", SECOND // 10, 400 * DAY) if "cpu" in said else None,
        files=an_int(said["files"], f"{field}.files", 8, MOST_FILES) if "files" in said else None,
        processes=an_int(said["processes"], f"{field}.processes", 1, MOST_PROCESSES) if "processes" in said else None,
        output=_size(said, "output", field),
        file_size=_size(said, "fileSize", field),
    )


def _size(given: dict[str, Any], name: str, field: str) -> int | None:
    return read_amount(given[name], f"{field}.{name}") if name in given else None


def render_confines(limits: Confines) -> dict[str, Any]:
    """The same as a user would write it; empty without any."""
    cpu = None if limits.cpu is None else format_duration(limits.cpu)
    said = (limits.memory, cpu, limits.files, limits.processes, limits.output, limits.file_size)
    return {name: value for name, value in zip(FIELDS, said, strict=True) if value is not None}
