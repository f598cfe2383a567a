"""The doctor's checks of a store, through its server or by opening it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from horae.cli.checks import Check, State, clock_check, disk_state
from horae.config.settings import Settings
from horae.config.show import masked
from horae.env import Env
from horae.errors import HoraeError, StoreInUse
from horae.store.open import DEFAULT

if TYPE_CHECKING:
    from horae.store.checkup import Facts
    from horae.store.contract import Store

OLDEST_POSTGRES = 140_000  # `server_version_num` of PostgreSQL 14
OLD_SNAPSHOT = 3600  # seconds; an older transaction gets a warning
KINDS = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


async def store_checks(settings: Settings, env: Env) -> list[Check]:
    """Open the store and check it."""
    from horae.store.checkup import examine
    from horae.store.contract import Store
    from horae.store.open import open_store_driver

    shown = masked(settings.store_url)
    path = sqlite_path(settings.store_url)
    if path is not None and not path.exists():
        return [Check("store", "warn", f"there is no store at {shown} yet", "The first `horae up` creates it.")]
    try:
        driver = await open_store_driver(settings.direct_url, env, "(horae doctor)")
    except StoreInUse as owned:
        at = owned.fields.get("url")
        remedy = "A SQLite store has one owner. Ask that server: horae doctor, without --offline"
        return [Check("store", "fail", owned.detail, f"{remedy}{f' (--server {at})' if at else ''}.")]
    except HoraeError as error:
        return [Check("store", "fail", error.detail, error.remedy)]
    try:
        store = Store(driver, env)
        facts = await examine(store)
        sealed = [] if facts.version is None else [sealed_check(await _sealed_state(store, settings))]
    except HoraeError as error:
        return [Check("store", "fail", error.detail, error.remedy)]
    finally:
        await driver.close()
    found = [Check("store", "ok", f"{product_of(facts)}, {shown} answers"), *settings_checks(facts), *sealed]
    if facts.dialect == "sqlite":
        return found
    return [*found, _pooler(settings), clock_check("store clock", facts.clock_offset, "the store's")]


def reported_checks(document: dict[str, Any]) -> list[Check]:
    """Check a store by the facts that its server reports.

    The server's time follows the clock of the store, so the two clocks are not compared.
    """
    facts = reported_facts(document)
    found = [Check("store", "ok", f"{product_of(facts)}, the server reaches it"), *settings_checks(facts)]
    if "sealed" in document:
        found.append(sealed_check(document["sealed"]))
    if trouble := document.get("archiveProblem"):
        found.append(_archive_check(trouble))
    if facts.free is None:
        return found
    state, size = disk_state(facts.free)
    remedy = "" if state == "ok" else "Make room on the server's disk, shorten HORAE_RETENTION, or move its --data."
    return [*found, Check("store disk", state, f"{size} free on the server's disk", remedy)]


async def _sealed_state(store: "Store", settings: Settings) -> dict[str, Any]:
    from horae.engine.base.sealing import Sealer
    from horae.engine.tenancy.sealed_kinds import SealedKinds

    sealer = Sealer(store.env, store, str(settings.master_key), str(settings.master_key_path))
    await sealer.prepare(recording=False)
    sealed: dict[str, Any] = msgspec.to_builtins(await SealedKinds(store.env, store, sealer).check())
    return sealed


def sealed_check(sealed: dict[str, Any]) -> Check:
    """Check that the master key opens all sealed values."""
    good, bad = sealed["decryptable"], sealed["undecryptable"]
    if bad:
        keys = ", ".join(sealed["missingKeys"]) or "none that is known"
        remedy = "Also give the server the key that sealed these values: HORAE_MASTER_KEY=NEW,OLD."
        return Check("master key", "fail", f"{bad:,} sealed values cannot be decrypted; missing: {keys}", remedy)
    if not sealed["canSeal"]:
        state: State = "fail" if sealed["missingKeys"] else "warn"
        return Check("master key", state, sealed["problem"] or "", sealed["remedy"] or "")
    return Check(
        "master key", "ok", f"decrypts all {good:,} sealed values" if good else "works; there are no sealed values"
    )


def _archive_check(trouble: dict[str, Any]) -> Check:
    remedy = "The store grows until it can archive its ended executions. Make room, or repair the storage."
    return Check("archive", "fail", f"since {trouble['since']}: {trouble['problem']}", remedy)


def reported_facts(document: dict[str, Any]) -> "Facts":
    """Return the facts in a server's document."""
    from horae.store.checkup import Facts

    return Facts(
        dialect=document["kind"],
        version=document["revision"],
        newest=document["newestRevision"],
        settings=document["settings"],
        free=document["freeBytes"],
    )


def product_of(facts: "Facts") -> str:
    """Return the kind of a store, with its version."""
    return f"{KINDS.get(facts.dialect, facts.dialect)} {facts.product}"


def sqlite_path(url: str) -> Path | None:
    """Return the file of a SQLite store; None for any other store."""
    rest = url.removeprefix("sqlite:///")
    return Path(rest) if rest != url and rest not in ("", ":memory:") else None


def settings_checks(facts: "Facts") -> Iterator[Check]:
    """Check a store's revision and settings."""
    yield _migrations(facts)
    if facts.dialect == "sqlite":
        yield _sqlite_durability(facts)
        return
    yield _postgres_version(facts)
    yield from _postgres_durability(facts)
    yield from _postgres_upkeep(facts)


def _migrations(facts: "Facts") -> Check:
    if facts.version is None:
        return Check(
            "migrations", "warn", "no tables yet", "A server creates the tables at its start, or: horae db upgrade"
        )
    if facts.version > facts.newest:
        remedy = "Install the version of Horae that migrated the store: pip install -U horae"
        return Check("migrations", "fail", f"store {facts.version} is newer than this program's {facts.newest}", remedy)
    if facts.version < facts.newest:
        remedy = "A server migrates the store at its start, or: horae db upgrade"
        return Check("migrations", "warn", f"store {facts.version}, program {facts.newest}", remedy)
    return Check("migrations", "ok", f"at {facts.version}, the newest")


def _sqlite_durability(facts: "Facts") -> Check:
    durable = (facts.settings["journal_mode"], facts.settings["synchronous"]) == ("wal", "2")
    detail = f"journal {facts.settings['journal_mode']}, synchronous {facts.settings['synchronous']}"
    return Check("durability", "ok" if durable else "fail", detail, "" if durable else "Use a local disk.")


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
        remedy = "Set synchronous_commit = on for Horae's role: otherwise a crash loses acknowledged work."
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
    remedy = (
        f"Raise max_connections, or run fewer servers: each opens up to {DEFAULT.most} connections."
        if state == "warn"
        else ""
    )
    yield Check("connections", state, f"{used} of {most}", remedy)


_SNAPSHOT = "A transaction this old keeps dead rows from being cleared away: end it (pg_stat_activity, xact_start)."
_UPKEEP = {
    "oldest_snapshot_seconds": (OLD_SNAPSHOT, "oldest snapshot (s)", _SNAPSHOT),
    "inactive_slots": (0, "inactive replication slots", "They keep dead rows from being cleared away: drop them."),
    "feedback_standbys": (0, "standbys with feedback", "Their long queries keep dead rows (hot_standby_feedback)."),
}


def _pooler(settings: Settings) -> Check:
    if settings.store_direct:
        return Check(
            "pooler", "ok", f"pools by transaction; HORAE_STORE_DIRECT bypasses it at {masked(settings.store_direct)}"
        )
    if ":6432" not in settings.store_url:
        return Check("pooler", "ok", "none detected")
    remedy = "Let it pool by session, or give PostgreSQL's own URL, too (HORAE_STORE_DIRECT)."
    return Check("pooler", "warn", "port 6432 looks like PgBouncer", remedy)
