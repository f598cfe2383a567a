"""Hash passwords with argon2 in threads, at most two at a time, because a hash takes much memory and time."""

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argon2 import PasswordHasher

AT_ONCE = 2


class Passwords:
    """Hashes passwords and checks them."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def hash(self, password: str) -> str:
        """Return the hash of a password."""
        async with self._slots:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def matches(self, stored_hash: str | None, password: str) -> bool:
        """Return whether a password matches a hash.

        Without a hash, return False after the same time, so that the time does not reveal whether a user exists.
        """
        async with self._slots:
            return (
                await asyncio.to_thread(self._verify, stored_hash or self._dummy_hash, password)
                and stored_hash is not None
            )

    def is_old(self, stored_hash: str) -> bool:
        """Return whether a hash was computed with other parameters than the current ones."""
        return self._hasher.check_needs_rehash(stored_hash)

    def _verify(self, stored_hash: str, password: str) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError

        try:
            return self._hasher.verify(stored_hash, password)
        except (VerificationError, InvalidHashError):
            return False

    @cached_property
    def _hasher(self) -> "PasswordHasher":
        """The hasher, created at its first use, because few servers need it."""
        from argon2 import PasswordHasher

        return PasswordHasher()

    @cached_property
    def _dummy_hash(self) -> str:
        return self._hasher.hash("dummy password")
