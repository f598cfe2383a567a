"""Which installation a store is: a copy is another one, and its workers must not end up with the original."""

from uuid import UUID

from msgspec import Struct


class Installation(Struct, frozen=True):
    """A store's identity, and those that it had before it was restored or copied."""

    id: UUID
    former: frozenset[UUID] = frozenset()

    def accepts(self, named: str) -> bool:
        """Whether a worker that registered with this installation may talk to it.

        Workers of what it was copied from may: after a restore in place they go on. Those of a copy may not.
        """
        try:
            id = UUID(named)
        except ValueError:
            return False
        return id == self.id or id in self.former
