"""A part of a server: the moments at which a node calls it."""

from collections.abc import Collection, Sequence

from horae.engine.service import Service
from horae.model.base.store_view import StoreView

ROLES = frozenset({"api", "gateway", "scheduler"})  # that a server may take; all by default


class ServerPart:
    """A group of objects that belong together. A node calls the methods below in their order."""

    async def prepare(self) -> None:
        """Read from the store what the part needs before it serves."""

    def services(self, roles: Collection[str]) -> Sequence[Service]:
        """Return the services that run in a server of these roles."""
        return ()

    async def reported(self, report: StoreView) -> StoreView:
        """Return a report on the store with what this part knows of it."""
        return report

    async def finish(self) -> None:
        """Finish what was accepted; services still run."""

    async def stop(self) -> None:
        """Stop what is under way beside the services, which have ended."""

    async def flush(self) -> None:
        """Write what is only in memory. Raises StoreUnavailable."""

    async def close(self) -> None:
        """Let go of what is outside the store, which is closed."""
