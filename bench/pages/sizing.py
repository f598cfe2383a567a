"""Arithmetic from measured figures to machines that were not measured: pure, so that no number is made by hand."""

from math import ceil

from msgspec import Struct

DAY = 86_400  # seconds
UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
LOADED = 0.5  # of a core that a part may be planned to use: the rest is for peaks and for what a failed one leaves


class Cost(Struct, frozen=True):
    """Microseconds of processor time that an execution costs each part."""

    server: float
    worker: float
    database: float


class Needs(Struct, frozen=True):
    """What a rate takes. A server or worker process uses one core at most, so it is counted in processes."""

    servers: int
    workers: int
    database: int  # cores


def bytes_kept(a_day: int, days: int, bytes_each: float) -> float:
    """What so many executions a day, kept so many days, take on disk."""
    return a_day * days * bytes_each


def shown_bytes(count: float) -> str:
    """In units of a thousand, as disks are sold."""
    for unit in UNITS:
        if count < 1000 or unit == UNITS[-1]:
            return f"{count:.3g} {unit}" if count < 1000 else f"{count:,.0f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")


def cores(rate: float, micros: float) -> float:
    """Cores that are busy all the time with so many executions a second."""
    return rate * micros / 1e6


def needs(rate: float, cost: Cost) -> Needs:
    """What a rate takes when nothing is planned to be busier than LOADED."""
    return Needs(
        servers=ceil(cores(rate, cost.server) / LOADED),
        workers=ceil(cores(rate, cost.worker) / LOADED),
        database=ceil(cores(rate, cost.database) / LOADED),
    )


def database_limit(cores: int, cost: Cost) -> float:
    """Executions a second for which so many cores of a database are all busy; its disk may say no before."""
    return cores * 1e6 / cost.database


def fires(schedules: int, every: int) -> float:
    """Fires a second of schedules that each fire every so many seconds."""
    return schedules / every
