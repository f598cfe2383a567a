"""PostgreSQL's errors in Horae's words."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import asyncpg

from horae.errors import StoreUnavailable

BROKEN = (
    OSError,
    asyncio.TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the server said goodbye while nobody listened
)
RACES = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
REFUSED = (
    asyncpg.InvalidCatalogNameError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.exceptions.ClientConfigurationError,
)

_UNAVAILABLE = (
    asyncpg.InsufficientResourcesError,  # full disk, too many connections, out of memory
    asyncpg.OperatorInterventionError,  # shutting down, starting up, statement timeout
    asyncpg.LockNotAvailableError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InvalidAuthorizationSpecificationError,
)


@contextmanager
def translated() -> Iterator[None]:
    """Raise what happens inside in Horae's words."""
    try:
        yield
    except BaseException as error:
        reraise(error)


def reraise(error: BaseException, committing: bool = False) -> NoReturn:
    """Raise an error in Horae's words."""
    told = in_our_words(error, committing)
    if told is error:
        raise error
    raise told from error


def in_our_words(error: BaseException, committing: bool = False) -> BaseException:
    """The error to raise instead; a connection that breaks at the commit leaves its outcome unknown."""
    if not isinstance(error, (*BROKEN, *_UNAVAILABLE)):
        return error
    detail = f"PostgreSQL is not available ({type(error).__name__}: {error})."
    if committing and isinstance(error, (*BROKEN, asyncpg.OperatorInterventionError)):
        return StoreUnavailable(detail, "Repeat with the same idempotency key: it may have been done.", unknown=True)
    return StoreUnavailable(detail)
