"""The audit log: each change is logged before it starts and after it ends, so that no change is without a row."""

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from horae.engine.base.sealing import Sealer
from horae.engine.batcher import Batcher
from horae.engine.tenancy.throttle import network_of
from horae.env import Env
from horae.errors import StoreUnavailable
from horae.features.audit_log.model import AuditRow, AuditVerdict, ChainChecker, ChainHead, Link, RowFilter, show_row
from horae.features.audit_log.store import log as scripts
from horae.model.tenancy.audit import AuditEntry
from horae.model.tenancy.principal import DEFAULT_NAMESPACE, Principal
from horae.store.contract import Store

MOST_TOGETHER = 64  # entries that are appended in one transaction
CHECKED_TOGETHER = 2000  # rows that the check reads in one transaction
DENIED_EVERY = 60.0  # seconds before the same denial of a credential is logged again
MOST_DENIED_OF_ONE = 20  # rows about denials of one credential in `DENIED_EVERY` seconds
MOST_DENIED = 10_000  # credentials whose denials are remembered
MOST_FAILED = 200  # rows about failed sign-ins in `DENIED_EVERY` seconds, from all addresses
NOBODY = "nobody"  # the actor of requests without a valid credential


class AuditLog:
    """Appends to the log and reads it."""

    def __init__(self, env: Env, store: Store, sealer: Sealer) -> None:
        """Create the log; `sealer` signs its head with a key that is not in the store."""
        self._env, self._store, self._sealer = env, store, sealer
        self._denied: dict[str, dict[tuple[str, str], float]] = {}  # by credential: denied operations, with their times
        self._batcher: Batcher[AuditEntry, int] = Batcher(self._write, most=MOST_TOGETHER)

    async def prepare(self) -> None:
        """Sign a log that was begun without a master key, if this server has given the store its first one."""
        if self._sealer.gave_first_key:
            await self._store.write(lambda: scripts.sign_first(self._sealer.sign))

    async def append(self, entry: AuditEntry) -> int:
        """Append an entry; return its position in the log when it is stored."""
        return await self._batcher.do(entry)

    async def note(self, who: Principal, address: str, action: str, target: str = "", detail: str = "{}") -> None:
        """Log an action that no other row shows, such as a sign-in or the receipt of an erasure."""
        actor = who.key if who.kind == "user" else f"key:{who.key}"
        await self.append(
            AuditEntry(
                at=self._env.now(),
                namespace=who.namespace,
                actor=actor,
                actor_name=who.name,
                address=address,
                action=action,
                target=target,
                outcome="done",
                detail=detail,
            )
        )

    async def deny(self, entry: AuditEntry) -> None:
        """Log a denied operation, unless the same was denied recently: repeated requests must not fill the store."""
        what = entry.action, entry.target
        if not self._is_new(entry.actor, what, MOST_DENIED_OF_ONE):
            return
        try:
            await self.append(entry)
        except StoreUnavailable:
            self._denied.get(entry.actor, {}).pop(what, None)
            raise

    async def fail(self, action: str, name: str, address: str, error: str) -> None:
        """Log a failed sign-in, unless too many were logged recently: from its address, or from all addresses."""
        where = f"from {network_of(address)}"
        if not self._is_new(where, (action, name), MOST_DENIED_OF_ONE):
            return
        if not self._is_new(NOBODY, (action, f"{name} {where}"), MOST_FAILED):
            return
        entry = AuditEntry(
            at=self._env.now(), namespace=DEFAULT_NAMESPACE, actor=NOBODY, actor_name="", address=address,
            action=action, target=f"users/{name}" if name else "", outcome="denied",
            detail=msgspec.json.encode({"error": error[:500]}).decode(),
        )  # fmt: skip
        with suppress(StoreUnavailable):
            await self.append(entry)

    def _is_new(self, who: str, what: tuple[str, str], most: int) -> bool:
        """Tell whether a denial is new and below the limit of its credential (`who`); if so, remember it."""
        now = self._env.clock.monotonic()
        lately = {known: at for known, at in self._denied.get(who, {}).items() if now - at < DENIED_EVERY}
        if what in lately or len(lately) >= most:
            return False
        if len(self._denied) >= MOST_DENIED:
            self._denied.clear()
        self._denied[who] = {**lately, what: now}
        return True

    async def close(self) -> None:
        """Finish pending entries."""
        await self._batcher.close()

    async def rows(self, filters: RowFilter) -> list[AuditRow]:
        """Return rows, newest first."""
        return [show_row(link, name) for link, name in await self._store.read(lambda: scripts.rows(filters))]

    async def verify(self) -> AuditVerdict:
        """Check the whole chain, page by page, up to the head that is read together with the last page."""
        checker, is_whole = ChainChecker(), False
        while not is_whole and checker.broken is None:
            head, signed, links = await self._page(checker.seq)
            checker.follow(links)
            is_whole = len(links) < CHECKED_TOGETHER
        checker.end(head, signed, self._sealer.is_signed)
        return AuditVerdict(
            rows=checker.seq, head=checker.hash.hex(), signed=bool(head.signature), broken=checker.broken
        )

    async def _page(self, after: int) -> tuple[ChainHead, ChainHead, list[Link]]:
        return await self._store.read_at_once(lambda: scripts.chain(after, CHECKED_TOGETHER))

    async def _write(self, entries: Sequence[AuditEntry]) -> Sequence[int | BaseException]:
        return await self._store.write(lambda: scripts.append(entries, self._sealer.sign, self._sealer.is_signed))
