"""Resource limits of a command, or of a function in its own process, on its worker's machine."""

from typing import Annotated, Any

from msgspec import Struct, structs

from horae.env import SECOND, Micros
from horae.errors import BadInput
from horae.model.admission.placement.labels import read_amount
from horae.model.base.duration import DAY
from horae.model.fields.kinds import Custom, Duration, Integer
from horae.model.fields.table import Field, Object

LEAST_MEMORY = 1 << 20
_LIMITS = (
    'Write {"memory": "512MiB", "cpu": "30s", "files": 1024, "processes": 64, "output": "100MiB", "fileSize": "1GiB"}.'
)
_SIZE = Custom(read_amount, int | str, "int | str", out=int)


class ResourceLimits(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Limits of one execution. None means that this object sets no such limit. Sizes are in bytes."""

    memory: Annotated[int | None, Field(_SIZE, "Memory of all its processes together.")] = None
    cpu: Annotated[
        Micros | None, Field(Duration(SECOND // 10, 400 * DAY), "Processor time of all its processes together.")
    ] = None
    files: Annotated[int | None, Field(Integer(8, 1 << 20), "Files open at once in one process.")] = None
    processes: Annotated[int | None, Field(Integer(1, 1 << 22), "Processes at once.")] = None
    output: Annotated[
        int | None, Field(_SIZE, "Bytes that all its outputs together write to its log, stored or not.")
    ] = None
    file_size: Annotated[int | None, Field(_SIZE, "The size of a file that it writes.")] = None

    def over(self, defaults: "ResourceLimits") -> "ResourceLimits":
        """Return these limits; missing ones are taken from `defaults`."""
        said = {name: value for name, value in structs.asdict(self).items() if value is not None}
        return structs.replace(defaults, **said)


def _check_memory(limits: ResourceLimits, at: str) -> None:
    if limits.memory is not None and limits.memory < LEAST_MEMORY:
        remedy = "Nothing starts in less than 1MiB."
        raise BadInput(f"{at}.memory is {limits.memory} bytes.", remedy, field=f"{at}.memory")


NO_LIMITS = ResourceLimits()
RESOURCE_LIMITS = Object(ResourceLimits, _LIMITS, check=_check_memory)


def read_limits(value: Any, field: str) -> ResourceLimits:
    """Read the limits of an execution; null means none."""
    return NO_LIMITS if value is None else RESOURCE_LIMITS.read(value, field)
