"""The base class of a server's parts: the methods that a node calls on each of them."""

from collections.abc import Collection, Sequence

from horae.engine.service import Service
from horae.model.base.store_view import StoreView

ROLES = frozenset({"api", "gateway", "scheduler"})  # the roles of a server; it has all by default


class ServerPart:
    """A group of related objects. A node calls the methods below in this order."""

    async def prepare(self) -> None:
        """Read from the store what the part needs before it serves."""

    def services(self, roles: Collection[str]) -> Sequence[Service]:
        """Return the services that run in a server of these roles."""
        return ()

    async def complete_report(self, report: StoreView) -> StoreView:
        """Return a report on the store, completed with the facts that this part adds."""
        return report

    async def finish(self) -> None:
        """Finish accepted work, while the services still run."""

    async def stop(self) -> None:
        """Stop other background work, after the services have ended."""

    async def flush(self) -> None:
        """Write data that is only in memory. Raises StoreUnavailable."""

    async def close(self) -> None:
        """Release resources outside the store, after the store was closed."""
