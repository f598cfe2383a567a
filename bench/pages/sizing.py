"""Arithmetic from measured figures to other machines: pure functions, so that no number is written by hand."""

from math import ceil

from msgspec import Struct

DAY = 86_400  # seconds
UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
LOADED = 0.5  # the share of a core to plan for a part: the rest is for peaks and for the load of a failed part


class Cost(Struct, frozen=True):
    """The microseconds of processor time that an execution costs each part."""

    server: float
    worker: float
    database: float


class Needs(Struct, frozen=True):
    """The needs of a rate. A server or worker process uses one core at most, so these are counted in processes."""

    servers: int
    workers: int
    database: int  # cores


def bytes_kept(a_day: int, days: int, bytes_each: float) -> float:
    """Return the bytes on disk of a number of executions per day that are stored for some days."""
    return a_day * days * bytes_each


def shown_bytes(count: float) -> str:
    """Return a size in units of a thousand, as disks are sold."""
    for unit in UNITS:
        if count < 1000 or unit == UNITS[-1]:
            return f"{count:.3g} {unit}" if count < 1000 else f"{count:,.0f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")


def cores(rate: float, micros: float) -> float:
    """Return the number of cores that a rate keeps busy all the time."""
    return rate * micros / 1e6


def needs(rate: float, cost: Cost) -> Needs:
    """Return the needs of a rate when no part is planned to be busier than LOADED."""
    return Needs(
        servers=ceil(cores(rate, cost.server) / LOADED),
        workers=ceil(cores(rate, cost.worker) / LOADED),
        database=ceil(cores(rate, cost.database) / LOADED),
    )


def database_limit(cores: int, cost: Cost) -> float:
    """Return the executions per second that keep all cores of a database busy; its disk may be a lower limit."""
    return cores * 1e6 / cost.database


def fires(schedules: int, every: int) -> float:
    """Return the fires per second of schedules with an interval."""
    return schedules / every
