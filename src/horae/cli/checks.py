"""The doctor's checks of this machine and the server: each is ok, warn or fail, with a remedy."""

import os
import shutil
import sys
from typing import Any, Literal

from msgspec import Struct

from horae.cli.remote import CliOverrides
from horae.config.load import is_unknown, misspelled
from horae.config.settings import Settings
from horae.env import SECOND, Env
from horae.errors import HoraeError

State = Literal["ok", "warn", "fail"]

MIB = 1024 * 1024
LITTLE_DISK, TIGHT_DISK = 200 * MIB, 2048 * MIB  # bytes of free space, below which the check fails or warns
MOST_EXECUTIONS, MOST_JOBS = 200, 10  # queued executions to inspect, and how many of their jobs to explain
FIXED_SQLITE = (3, 51, 3)  # the first version without the WAL-reset bug


class Check(Struct, frozen=True):
    """The result of one check."""

    name: str
    state: State
    detail: str
    remedy: str = ""

    @property
    def row(self) -> dict[str, str]:
        return {"name": self.name, "state": self.state, "detail": self.detail, "remedy": self.remedy}


def local_checks(settings: Settings) -> list[Check]:
    """Check this machine, without a server."""
    return [_python(), _variables(), _disk(settings), _sqlite_library(), _key_file(settings)]


def _python() -> Check:
    return Check("python", "ok", ".".join(map(str, sys.version_info[:3])))


def _variables() -> Check:
    strange = sorted(filter(is_unknown, os.environ))
    if not strange:
        return Check("settings", "ok", "read; `horae config show --origin` shows their origins")
    meant = "".join(
        f" Did you mean {right} instead of {name}?" for name, right in sorted(misspelled(os.environ).items())
    )
    return Check("settings", "warn", f"not a setting of Horae: {', '.join(strange)}", f"Correct or remove it.{meant}")


def _disk(settings: Settings) -> Check:
    folder = settings.data.resolve()
    while not folder.exists():
        folder = folder.parent
    state, size = disk_state(shutil.disk_usage(folder).free)
    remedy = "" if state == "ok" else "Make room, shorten HORAE_RETENTION, or move --data to another disk."
    return Check("disk", state, f"{size} free at {folder}", remedy)


def disk_state(free: int) -> tuple[State, str]:
    """Return the state and a text for an amount of free disk space in bytes."""
    state: State = "fail" if free < LITTLE_DISK else "warn" if free < TIGHT_DISK else "ok"
    return state, f"{free // MIB:,} MiB"


def _sqlite_library() -> Check:
    from horae.store.sqlite.library import NAME, VERSION

    detail = f"{VERSION} ({NAME})"
    if tuple(int(part) for part in VERSION.split(".")) >= FIXED_SQLITE:
        return Check("sqlite library", "ok", detail)
    remedy = (
        "Before 3.51.3 SQLite has a rare WAL-reset bug when several connections write; Horae writes with one. "
        "`pip install pysqlite3` brings a newer library where it has a wheel."
    )
    return Check("sqlite library", "warn", detail, remedy)


def _key_file(settings: Settings) -> Check:
    path = settings.key_file
    if not path.exists():
        return Check("key file", "ok", f"none at {path}")
    if path.stat().st_mode & 0o077:
        return Check("key file", "fail", f"{path} is readable by others", f"chmod 600 {path}")
    return Check("key file", "ok", f"{path}, readable by its owner alone")


async def server_checks(settings: Settings, env: Env, overrides: CliOverrides) -> list[Check]:
    """Check the server and its workers."""
    from horae.cli.remote import connect

    client = connect(overrides, env, settings)
    try:
        return [check async for check in _server(client, env, settings)]
    finally:
        await client.close()


async def _server(client: Any, env: Env, settings: Settings) -> Any:
    from horae.cli.installation.store_checks import reported_checks

    try:
        health = await client.health()
    except HoraeError as error:
        yield Check("server", "fail", error.detail, error.remedy or "Check the store itself: horae doctor --offline")
        return
    yield Check("server", "ok", f"version {health.version} at {client.place}")
    if health.clock_offset is not None:
        yield clock_check("clock", health.clock_offset, "the server's")
    try:
        await client.ready()
        for check in reported_checks((await client.store()).raw):
            yield check
        yield _workers(await client.workers.list())
        yield await _queued(client)
        yield _servers(await client.servers.list())
        yield _trust(await client.clock.get())
    except HoraeError as error:
        yield Check("access", "fail", error.detail, error.remedy)


def _servers(servers: Any) -> Check:
    lacking = [_place(one) for one in servers if one.raw.get("lacksMasterKey")]
    if lacking:
        remedy = (
            "These servers grant no executions that need secrets. Give every server the same key with HORAE_MASTER_KEY"
            " or HORAE_MASTER_KEY_FILE, and start it again."
        )
        return Check("servers", "fail", f"without the master key: {', '.join(lacking)}", remedy)
    return Check("servers", "ok", ", ".join(map(_server_in_words, servers)) or "this one")


def _place(server: Any) -> str:
    return str(server.raw["url"] or f"{server.raw['host']}, process {server.raw['pid']}")


def _server_in_words(server: Any) -> str:
    """Describe a server: its address and its roles."""
    return f"{_place(server)} ({', '.join(server.raw['roles'])})"


def _trust(clock: Any) -> Check:
    """Check the store's clock: after a jump the server stops firing schedules and expiring leases."""
    if clock.raw["trusted"]:
        return Check("schedules", "ok", "fire by a clock that did not jump")
    detail = f"stopped: the store's clock jumped by {clock.raw['jumpSeconds']:.0f} s"
    remedy = "Correct the database host's clock. If it is right, accept its time: horae doctor --accept-clock"
    return Check("schedules", "fail", detail, remedy)


def _workers(workers: Any) -> Check:
    count = {status: sum(one.status == status for one in workers) for status in ("live", "late", "draining", "lost")}
    detail = ", ".join(f"{number} {status}" for status, number in count.items() if number) or "none"
    if not count["live"]:
        return Check("workers", "warn", detail, "No job runs without a worker: horae worker --server URL --key KEY")
    if count["late"] or count["lost"]:
        return Check("workers", "warn", detail, "See them with: horae workers list")
    return Check("workers", "ok", detail)


async def _queued(client: Any) -> Check:
    """Explain one queued execution of each of MOST_JOBS jobs, to find those that no live worker can run."""
    jobs = {one.raw["jobName"]: one.raw for one in await client.executions.list(status="queued", limit=MOST_EXECUTIONS)}
    stuck: dict[str, list[str]] = {}
    for name, execution in list(jobs.items())[:MOST_JOBS]:
        explanation = (await client.executions.explain(execution["executionId"])).raw
        for blocker in explanation["blockers"]:
            if blocker["gate"] in ("no-worker", "no-key"):
                stuck.setdefault(f"{blocker['message']} {blocker['opensWhen']}", []).append(name)
    if not stuck:
        return Check(
            "queued",
            "ok",
            "a live worker can run all checked executions" if jobs else "no execution waits for a worker",
        )
    names = sorted({name for found in stuck.values() for name in found})
    return Check("queued", "warn", f"no live worker can run {', '.join(names)}", "\n".join(stuck))


def clock_check(name: str, offset: int, owner: str) -> Check:
    """Compare the store's clock, which Horae uses, with this machine's clock, which users and log files use.

    `offset` is in microseconds.
    """
    seconds = abs(offset) / SECOND
    detail = f"{seconds:.1f} s {'behind' if offset > 0 else 'ahead of'} {owner} clock"
    if seconds < 2:
        return Check(name, "ok", f"within 2 s of {owner} clock")
    return Check(name, "fail" if seconds > 60 else "warn", detail, "Let NTP set both clocks (timedatectl status).")
