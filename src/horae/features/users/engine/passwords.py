"""Passwords: hashed with argon2, beside the event loop, two at a time, because each takes memory and a while."""

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argon2 import PasswordHasher

AT_ONCE = 2


class Passwords:
    """Makes and checks hashes."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def hash(self, password: str) -> str:
        """What is kept of a password."""
        async with self._turn:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def is_right(self, kept: str | None, password: str) -> bool:
        """Whether a password is the one that a hash was made of; without a hash it takes as long to say no."""
        async with self._turn:
            return await asyncio.to_thread(self._verify, kept or self._nobodys, password) and kept is not None

    def is_old(self, kept: str) -> bool:
        """Whether a hash was made with less effort than is asked for now."""
        return self._hasher.check_needs_rehash(kept)

    def _verify(self, kept: str, password: str) -> bool:
        from argon2.exceptions import InvalidHashError, VerificationError

        try:
            return self._hasher.verify(kept, password)
        except (VerificationError, InvalidHashError):
            return False

    @cached_property
    def _hasher(self) -> "PasswordHasher":
        """Made when first used: few servers ever hash."""
        from argon2 import PasswordHasher

        return PasswordHasher()

    @cached_property
    def _nobodys(self) -> str:
        return self._hasher.hash("nobody's password")
