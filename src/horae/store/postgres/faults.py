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

# Errors of prepared statements behind a pooler, when the next transaction runs on another connection to PostgreSQL.
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


_REFUSED = "Check the URL's user, password and database (--store, HORAE_STORE); 'createdb horae' creates a database."
_ROOM = "Make room on PostgreSQL's disk; Horae then continues by itself. Nothing was changed."
_DIRECT = (
    "Set HORAE_STORE_DIRECT to PostgreSQL's own URL, configure the pooler to pool by session, or connect without the"
    " pooler."
)
_SILENT = (
    "Check the URL's host and port (--store, HORAE_STORE), that PostgreSQL runs there, and that PostgreSQL and its"
    " firewall accept connections from this machine."
)


def opening_error(url: str, error: StoreUnavailable) -> HoraeError:
    """Return an error that names the address of a store that could not be opened, and says what to check."""
    cause = error.__cause__ or error
    if isinstance(cause, REFUSED):
        return BadInput(f"PostgreSQL at {place_of(url)} refuses the connection: {cause}.", _REFUSED, field="store")
    reason = "no answer in time" if isinstance(cause, asyncio.TimeoutError) else str(cause) or type(cause).__name__
    return StoreUnavailable(f"PostgreSQL does not answer at {place_of(url)}: {reason}.", _SILENT)


def url_error(url: str) -> BadInput:
    """Return the error for a URL that cannot be parsed."""
    detail = f"The store's URL is not valid, near {place_of(url)!r}."
    return BadInput(detail, "Write it as postgresql://user:password@host:5432/database.", field="store")


def place_of(url: str) -> str:
    """Return the hosts of a URL for messages, without its credentials."""
    try:
        parts = urlsplit(url)
    except ValueError:  # unbalanced brackets
        return url.rpartition("@")[2]
    named = parts.netloc.rpartition("@")[2] or ",".join(parse_qs(parts.query).get("host", []))
    return named or "its default socket"


@contextmanager
def translated() -> Iterator[None]:
    """Replace PostgreSQL's errors that the block raises by Horae's."""
    try:
        yield
    except BaseException as error:
        reraise(error)


def reraise(error: BaseException, committing: bool = False) -> NoReturn:
    """Raise Horae's error for one of PostgreSQL's; `committing` says that a commit had been sent."""
    translated_error = to_horae_error(error, committing)
    if translated_error is error:
        raise error
    raise translated_error from error


def to_horae_error(error: BaseException, committing: bool = False) -> BaseException:
    """Return Horae's error for one of PostgreSQL's; other errors are returned unchanged.

    If a connection breaks while `committing`, the outcome is unknown.
    """
    if isinstance(error, _SHARED):
        return StoreUnavailable("A pooler gives each transaction another connection to PostgreSQL.", _DIRECT)
    if not isinstance(error, (*BROKEN, *_UNAVAILABLE)):
        return error
    detail = f"PostgreSQL is not available ({type(error).__name__}: {error})."
    if committing and isinstance(error, (*BROKEN, asyncpg.OperatorInterventionError)):
        return StoreUnavailable(
            detail, "Repeat the request with the same idempotency key: it may have been executed.", unknown=True
        )
    return StoreUnavailable(detail, _ROOM if isinstance(error, asyncpg.DiskFullError) else "")
