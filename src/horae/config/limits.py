"""The limits of commands on a worker's machine, computed from the settings."""

import os
from pathlib import Path

from horae.config.settings import Settings
from horae.errors import BadInput
from horae.model.admission.placement.labels import read_amount
from horae.model.definitions.resource_limits import ResourceLimits

# Files with the memory limit of a container: for version 2 of control groups, and for version 1.
_BOUNDS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def command_limits(settings: Settings) -> ResourceLimits:
    """Return the limits of commands and other executions in separate processes, for jobs that set no limits.

    Raises BadInput.
    """
    return ResourceLimits(
        memory=_memory(settings.command_memory),
        cpu=int(settings.command_cpu) or None,
        files=settings.command_files or None,
        processes=settings.command_processes or None,
        output=_size(settings.command_output, "command_output"),
        file_size=_size(settings.command_file_size, "command_file_size"),
    )


def check_user(settings: Settings) -> str:
    """Return the user that runs commands. Raises BadInput if the worker cannot switch to that user."""
    if settings.command_user and os.geteuid() != 0:
        raise BadInput(
            f"command_user is {settings.command_user!r}, but this worker does not run as root.",
            "Start the worker as that user or as root, because only root can run commands as another user.",
            field="command_user",
        )
    return settings.command_user


def _memory(text: str) -> int | None:
    if not text.endswith("%"):
        return _size(text, "command_memory")
    share = text[:-1].strip()
    if not share.isdecimal() or not 1 <= int(share) <= 100:
        remedy = 'Write a share of the memory from 1% to 100%, a size such as "2GiB", or 0 for no limit.'
        raise BadInput(f"{text[:20]!r} is not a valid value of command_memory.", remedy, field="command_memory")
    return machine_memory() * int(share) // 100


def _size(text: str, field: str) -> int | None:
    return None if text.strip() in ("", "0") else read_amount(text, field)


def machine_memory() -> int:
    """Return the memory of the machine in bytes, or the memory limit of the container if that is lower."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _BOUNDS:
        try:
            bound = Path(path).read_text().strip()
        except OSError:
            continue
        if bound.isdecimal():
            total = min(total, int(bound))
    return total
