"""The identity of a store. A copy of a store is another installation: its workers must not connect to the original."""

from uuid import UUID

from msgspec import Struct


class Installation(Struct, frozen=True):
    """A store's id, and the ids that it had before it was restored or copied."""

    id: UUID
    former: frozenset[UUID] = frozenset()

    def accepts(self, named: str) -> bool:
        """Return whether a worker that registered with the installation `named` may talk to this one.

        Workers of an installation from which this one was copied are accepted, so that they continue when a store is
        restored in place. Workers of a copy of this installation are refused.
        """
        try:
            named_id = UUID(named)
        except ValueError:
            return False
        return named_id == self.id or named_id in self.former
