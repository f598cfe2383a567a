"""Translate PostgreSQL's errors to Horae's."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn
from urllib.parse import parse_qs, urlsplit

import asyncpg

from horae.errors import BadInput, HoraeError, StoreUnavailable
from horae.store.postgres.hosts import NotPrimary

BROKEN = (
    OSError,
    asyncio.TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # the server closed the connection while it was idle
    NotPrimary,
)
RACES = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
REFUSED = (
    asyncpg.InvalidCatalogNameError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.exceptions.ClientConfigurationError,
)

# Raised for prepared statements when the next transaction runs on another connection.
_SHARED = (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError)
_UNAVAILABLE = (
    asyncpg.InsufficientResourcesError,  # full disk, too many connections, out of memory
    asyncpg.OperatorInterventionError,  # shutting down, starting up, statement timeout
    asyncpg.LockNotAvailableError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InvalidAuthorizationSpecificationError,
)


_REFUSED = "Check the URL's user, password and database (--store, HORAE_STORE); 'createdb horae' makes a database."
_ROOM = "Make room on PostgreSQL's disk; Horae goes on by itself then. Nothing was changed."
_DIRECT = "Name PostgreSQL's own URL too (HORAE_STORE_DIRECT), let the pooler pool by session, or go past it."
_SILENT = (
    "Check the URL's host and port (--store, HORAE_STORE), that PostgreSQL runs there, and that it and its firewall let"
    " this machine in."
)


def opening_error(url: str, error: StoreUnavailable) -> HoraeError:
    """Return the error for a store that could not be opened: its address, and what to check."""
    cause = error.__cause__ or error
    if isinstance(cause, REFUSED):
        return BadInput(f"PostgreSQL at {place_of(url)} refuses: {cause}.", _REFUSED, field="store")
    reason = "no answer in time" if isinstance(cause, asyncio.TimeoutError) else str(cause) or type(cause).__name__
    return StoreUnavailable(f"PostgreSQL does not answer at {place_of(url)}: {reason}.", _SILENT)


def url_error(url: str) -> BadInput:
    """Return the error for a URL that cannot be parsed."""
    detail = f"The store's URL cannot be read, at {place_of(url)!r}."
    return BadInput(detail, "Write it as postgresql://user:password@host:5432/database.", field="store")


def place_of(url: str) -> str:
    """Return the address of a URL, without its credentials."""
    try:
        parts = urlsplit(url)
    except ValueError:  # unbalanced brackets
        return url.rpartition("@")[2]
    named = parts.netloc.rpartition("@")[2] or ",".join(parse_qs(parts.query).get("host", []))
    return named or "its usual socket"


@contextmanager
def translated() -> Iterator[None]:
    """Raise errors from inside the block as Horae's."""
    try:
        yield
    except BaseException as error:
        reraise(error)


def reraise(error: BaseException, committing: bool = False) -> NoReturn:
    """Raise an error as Horae's."""
    translated_error = to_horae_error(error, committing)
    if translated_error is error:
        raise error
    raise translated_error from error


def to_horae_error(error: BaseException, committing: bool = False) -> BaseException:
    """Return Horae's error for one of PostgreSQL's. If a connection breaks during a commit, the outcome is unknown."""
    if isinstance(error, _SHARED):
        return StoreUnavailable("A pooler gives every transaction another connection to PostgreSQL.", _DIRECT)
    if not isinstance(error, (*BROKEN, *_UNAVAILABLE)):
        return error
    detail = f"PostgreSQL is not available ({type(error).__name__}: {error})."
    if committing and isinstance(error, (*BROKEN, asyncpg.OperatorInterventionError)):
        return StoreUnavailable(detail, "Repeat with the same idempotency key: it may have been done.", unknown=True)
    return StoreUnavailable(detail, _ROOM if isinstance(error, asyncpg.DiskFullError) else "")
