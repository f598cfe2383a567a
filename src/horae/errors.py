"""Every error a user can meet, each with its remedy.

The server renders them as application/problem+json, the CLI as a message and an exit code, the SDK raises them again.
`detail` says what happened and where, `remedy` what to do.
"""

from typing import Any, ClassVar


class HoraeError(Exception):
    """Something a user can act on."""

    status: ClassVar[int] = 500
    slug: ClassVar[str] = "internal"
    title: ClassVar[str] = "Something went wrong inside Horae"
    exit_code: ClassVar[int] = 1

    def __init__(self, detail: str, remedy: str = "", **fields: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.remedy = remedy
        self.fields = fields  # further members of the problem document, camelCase

    def __str__(self) -> str:
        return f"{self.detail} {self.remedy}".strip()


class BadInput(HoraeError):
    """The request cannot be understood or breaks a rule; nothing changed. `field` names where."""

    status, slug, title, exit_code = 400, "bad-input", "The request is not valid", 2


class OutcomeRefused(BadInput):
    """One outcome of an exchange is not valid; nothing of the exchange counts. `index` says which outcome."""

    slug, title = "outcome-refused", "One outcome of this exchange is not valid"


class ExchangeNumber(BadInput):
    """An exchange leaves numbers of its channel out. `expected` is the number that comes next."""

    slug, title = "exchange-number", "This exchange has the wrong number"


class Costly(BadInput):
    """An expression or a schema takes more work than it may; nothing changed."""

    slug, title = "too-costly", "It takes too much work to compute"


class Unauthorized(HoraeError):
    status, slug, title = 401, "unauthorized", "A credential is needed"


class BadSignature(Unauthorized):
    """A webhook does not prove that it comes from who knows its secret, or not that it is fresh; nothing changed."""

    slug, title = "bad-signature", "The signature is not valid"


class Forbidden(HoraeError):
    status, slug, title = 403, "forbidden", "This credential may not do that"


class NotFound(HoraeError):
    status, slug, title, exit_code = 404, "not-found", "There is no such thing", 3


class Conflict(HoraeError):
    """The request is fine but the state of things stands against it."""

    status, slug, title, exit_code = 409, "conflict", "The present state stands against it", 4


class SessionEnded(Conflict):
    """The session is not live: the worker stops what it runs and registers anew."""

    slug, title = "session-ended", "This session has ended"


class MasterKeyMissing(Conflict):
    """What is sealed cannot be opened, or nothing can be sealed, with the master keys that this server has."""

    slug, title = "master-key", "The master key is missing, or another one is needed"


class Gone(HoraeError):
    status, slug, title, exit_code = 410, "gone", "It existed and has expired", 3


class Stale(HoraeError):
    """If-Match named a version that is no longer current."""

    status, slug, title, exit_code = 412, "stale", "Somebody changed it meanwhile", 4


class TooLarge(HoraeError):
    status, slug, title, exit_code = 413, "too-large", "The payload is too large", 2


class Misdirected(HoraeError):
    """A worker of another installation, a copy of this one perhaps, asks here; nothing changed."""

    status, slug, title = 421, "misdirected", "This worker belongs to another installation"


class KeyReused(HoraeError):
    """An Idempotency-Key came again with another body."""

    status, slug, title, exit_code = 422, "key-reused", "This idempotency key belongs to another request", 4


class ProtocolMismatch(HoraeError):
    status, slug, title, exit_code = 426, "protocol-mismatch", "Worker and server speak different protocol versions", 2


class OverQuota(HoraeError):
    """A quota, or what a queue takes, stands against it; `retryAfter` seconds is a good time to come back."""

    status, slug, title = 429, "over-quota", "That is more than the quota allows"


class TooOften(HoraeError):
    """Asked again too soon; `retryAfter` says when it is looked at."""

    status, slug, title = 429, "too-often", "Asked too often"


class Busy(HoraeError):
    """Too much at once; `retry_after` seconds is a good time to come back."""

    status, slug, title = 503, "busy", "The server is busy"

    def __init__(self, detail: str, remedy: str = "", retry_after: int = 1, **fields: Any) -> None:
        super().__init__(detail, remedy or f"Try again in {retry_after} s; nothing was changed.", **fields)
        self.retry_after = retry_after


class StoreUnavailable(Busy):
    slug, title = "store-unavailable", "The store cannot be reached"


class StoreTooNew(HoraeError):
    """The store was migrated by a newer Horae."""

    status, slug, title = 500, "store-too-new", "The store is newer than this program"


class StoreInUse(HoraeError):
    """Another process owns the SQLite file."""

    status, slug, title = 500, "store-in-use", "Another process owns this store"
