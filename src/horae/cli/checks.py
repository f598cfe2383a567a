"""The doctor's checks: each is ok, doubtful or wrong, with what to do about it."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from horae.cli.remote import World
from horae.config import TABLE, Settings
from horae.config.show import masked
from horae.env import SECOND, Env
from horae.errors import HoraeError

if TYPE_CHECKING:
    from horae.store.checkup import Facts

State = Literal["ok", "warn", "fail"]

MIB = 1024 * 1024
LITTLE_DISK, TIGHT_DISK = 200 * MIB, 2048 * MIB
FIXED_SQLITE = (3, 51, 3)
OLDEST_POSTGRES = 140_000
OLD_SNAPSHOT = 3600  # seconds
# What a worker gives the commands it runs; they are no settings.
GIVEN = {"EXECUTION_ID", "JOB", "ATTEMPT", "TOKEN", "SCHEDULED_AT", "OUTPUT", "CHECKPOINT", "ARTIFACTS"}
OTHERS = {"CONFIG", "DEBUG", "PROVE", "COMPLETE", "TEST_FOLDER"}


class Check(Struct, frozen=True):
    """One thing looked at."""

    name: str
    state: State
    detail: str
    remedy: str = ""

    @property
    def row(self) -> dict[str, str]:
        return {"name": self.name, "state": self.state, "detail": self.detail, "remedy": self.remedy}


def local_checks(settings: Settings) -> list[Check]:
    """What this machine tells without asking anybody."""
    return [_python(), _variables(), _disk(settings), _sqlite_library(), _key_file(settings)]


def _python() -> Check:
    return Check("python", "ok", ".".join(map(str, sys.version_info[:3])))


def _variables() -> Check:
    known = {setting.variable for setting in TABLE.values()} | {f"HORAE_{name}" for name in GIVEN | OTHERS}
    strange = sorted(name for name in os.environ if name.startswith("HORAE_") and name not in known)
    if not strange:
        return Check("settings", "ok", "read; `horae config show --origin` tells where each comes from")
    return Check("settings", "warn", f"{', '.join(strange)} means nothing to Horae", "Correct or remove it.")


def _disk(settings: Settings) -> Check:
    folder = settings.data.resolve()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    state: State = "fail" if free < LITTLE_DISK else "warn" if free < TIGHT_DISK else "ok"
    remedy = "" if state == "ok" else "Make room, shorten HORAE_RETENTION, or move --data to another disk."
    return Check("disk", state, f"{free // MIB:,} MiB free at {folder}", remedy)


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


async def server_checks(settings: Settings, env: Env, world: World) -> list[Check]:
    """What the server and its workers tell."""
    from horae.cli.remote import connect

    client = connect(world, env, ",".join(settings.url), str(settings.key) or None, None)
    try:
        return [check async for check in _server(client, env, settings)]
    finally:
        await client.close()


async def _server(client: Any, env: Env, settings: Settings) -> Any:
    try:
        health = await client.health()
    except HoraeError as error:
        yield Check("server", "fail", error.detail, error.remedy or "Or look at the store: horae doctor --offline")
        return
    yield Check("server", "ok", f"version {health.version} at {settings.url[0]}")
    if health.clock_offset is not None:
        yield _clock("clock", health.clock_offset, "the server's")
    try:
        await client.ready()
        yield Check("store", "ok", "the server reaches it")
        yield _workers(await client.workers.list())
        servers = await client.servers.list()
        yield Check("servers", "ok", ", ".join(str(one.raw.get("url")) for one in servers) or "this one")
        yield _trust(await client.clock.get())
    except HoraeError as error:
        yield Check("access", "fail", error.detail, error.remedy)


def _trust(clock: Any) -> Check:
    """A store's clock that jumped stops firing and expiring."""
    if clock.raw["trusted"]:
        return Check("schedules", "ok", "fire by a clock that did not jump")
    detail = f"stopped: the store's clock jumped by {clock.raw['jumpSeconds']:.0f} s"
    remedy = "Set the database host's clock; if it is right now, go on with: horae doctor --accept-clock"
    return Check("schedules", "fail", detail, remedy)


def _workers(workers: Any) -> Check:
    count = {status: sum(one.status == status for one in workers) for status in ("live", "late", "draining", "lost")}
    detail = ", ".join(f"{number} {status}" for status, number in count.items() if number) or "none"
    if not count["live"]:
        return Check("workers", "warn", detail, "Nothing runs without one: horae worker --server URL --key KEY")
    if count["late"] or count["lost"]:
        return Check("workers", "warn", detail, "Look at them: horae workers list")
    return Check("workers", "ok", detail)


def _clock(name: str, offset: int, whose: str) -> Check:
    """Horae itself goes by the store's clock; people and logs go by this one."""
    seconds = abs(offset) / SECOND
    detail = f"{seconds:.1f} s {'behind' if offset > 0 else 'ahead of'} {whose} clock"
    if seconds < 2:
        return Check(name, "ok", f"within 2 s of {whose} clock")
    return Check(name, "fail" if seconds > 60 else "warn", detail, "Let NTP set both clocks (timedatectl status).")


async def store_checks(settings: Settings, env: Env) -> list[Check]:
    """What the store tells when it is opened."""
    from horae.store.checkup import examine
    from horae.store.open import open_store_driver

    shown = masked(settings.store_url)
    path = sqlite_path(settings.store_url)
    if path is not None and not path.exists():
        return [Check("store", "warn", f"there is none at {shown} yet", "The first `horae up` makes it.")]
    try:
        driver = await open_store_driver(settings.store_url, env, "(horae doctor)")
    except HoraeError as error:
        return [Check("store", "fail", error.detail, error.remedy)]
    try:
        facts = await examine(driver, env.now())
    except HoraeError as error:
        return [Check("store", "fail", error.detail, error.remedy)]
    finally:
        await driver.close()
    return [Check("store", "ok", f"{shown} answers"), _migrations(facts), *_judged(facts, settings)]


def sqlite_path(url: str) -> Path | None:
    """The file of a SQLite store; None for any other."""
    rest = url.removeprefix("sqlite:///")
    return Path(rest) if rest != url and rest not in ("", ":memory:") else None


def _migrations(facts: "Facts") -> Check:
    if facts.version is None:
        return Check("migrations", "warn", "no tables yet", "A server makes them at its start, or: horae db upgrade")
    if facts.version > facts.newest:
        remedy = "Install the Horae that migrated it: pip install -U horae"
        return Check("migrations", "fail", f"store {facts.version} is newer than this program's {facts.newest}", remedy)
    if facts.version < facts.newest:
        remedy = "A server migrates it at its start, or: horae db upgrade"
        return Check("migrations", "warn", f"store {facts.version}, program {facts.newest}", remedy)
    return Check("migrations", "ok", f"at {facts.version}, the newest")


def _judged(facts: "Facts", settings: Settings) -> Iterator[Check]:
    if facts.dialect == "sqlite":
        durable = (facts.settings["journal_mode"], facts.settings["synchronous"]) == ("wal", "2")
        detail = f"journal {facts.settings['journal_mode']}, synchronous {facts.settings['synchronous']}"
        yield Check("durability", "ok" if durable else "fail", detail, "" if durable else "Use a local disk.")
        return
    yield _postgres_version(facts)
    yield from _postgres_durability(facts)
    yield from _postgres_upkeep(facts)
    yield _pooler(settings.store_url)
    yield _clock("store clock", facts.clock_offset, "the store's")


def _postgres_version(facts: "Facts") -> Check:
    version = int(facts.settings["server_version_num"])
    if version < OLDEST_POSTGRES:
        return Check("postgresql", "fail", facts.settings["server_version"], "Horae needs PostgreSQL 14 or newer.")
    return Check("postgresql", "ok", facts.settings["server_version"])


def _postgres_durability(facts: "Facts") -> Iterator[Check]:
    for name in ("fsync", "full_page_writes"):
        if facts.settings.get(name) != "on":
            yield Check(name, "fail", f"{name} is off: a crash may lose or break the store", f"Set {name} = on.")
    if facts.settings.get("synchronous_commit") == "off":
        remedy = "Horae asks for it itself; a role that forbids that loses acknowledged work in a crash."
        yield Check("synchronous_commit", "fail", "off on Horae's own connections", remedy)
    elif facts.settings.get("fsync") == "on":
        yield Check("durability", "ok", f"fsync on, synchronous_commit {facts.settings.get('synchronous_commit')}")


def _postgres_upkeep(facts: "Facts") -> Iterator[Check]:
    numbers = {name: int(facts.settings.get(name, 0)) for name in _UPKEEP}
    for name, (bound, what, remedy) in _UPKEEP.items():
        if numbers[name] > bound:
            yield Check(what, "warn", f"{numbers[name]}", remedy)
    if facts.settings.get("autovacuum") == "off":
        yield Check("autovacuum", "fail", "off: the shelves fill with dead rows", "Set autovacuum = on.")
    used, most = int(facts.settings["connections"]), int(facts.settings["max_connections"])
    state: State = "warn" if used > most * 0.8 else "ok"
    remedy = "Raise max_connections, or put fewer servers on it: each takes up to 9." if state == "warn" else ""
    yield Check("connections", state, f"{used} of {most}", remedy)


_SNAPSHOT = "A transaction this old keeps dead rows from being cleared away: end it (pg_stat_activity, xact_start)."
_UPKEEP = {
    "oldest_snapshot_seconds": (OLD_SNAPSHOT, "oldest snapshot (s)", _SNAPSHOT),
    "inactive_slots": (0, "inactive replication slots", "They keep dead rows: drop those that nobody reads."),
    "feedback_standbys": (0, "standbys with feedback", "Their long queries keep dead rows (hot_standby_feedback)."),
}


def _pooler(url: str) -> Check:
    if ":6432" not in url:
        return Check("pooler", "ok", "none seen")
    remedy = (
        "PgBouncer must be 1.21 or newer with max_prepared_statements > 0, or pool by session. Hints between servers "
        "need LISTEN, so a direct connection; without one servers poll, which costs up to a second."
    )
    return Check("pooler", "warn", "port 6432 looks like PgBouncer", remedy)
