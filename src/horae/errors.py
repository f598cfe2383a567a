"""All errors that users can meet, each with its remedy.

The server renders them as application/problem+json, the CLI as a message and an exit code, and the SDK raises them
again. `detail` says what happened and where; `remedy` says what to do.
"""

from typing import Any, ClassVar


class HoraeError(Exception):
    """An error that a user can act on."""

    status: ClassVar[int] = 500
    slug: ClassVar[str] = "internal"
    title: ClassVar[str] = "Something went wrong inside Horae"
    exit_code: ClassVar[int] = 1

    def __init__(self, detail: str, remedy: str = "", **fields: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.remedy = remedy
        self.fields = fields  # further members of the problem document, in camelCase

    def __str__(self) -> str:
        return f"{self.detail} {self.remedy}".strip()


class BadInput(HoraeError):
    """The request cannot be understood or breaks a rule; nothing changed. `field` names the wrong field."""

    status, slug, title, exit_code = 400, "bad-input", "The request is not valid", 2


class OutcomeRefused(BadInput):
    """One outcome of an exchange is not valid; the whole exchange is ignored. `index` is the outcome's position."""

    slug, title = "outcome-refused", "One outcome of this exchange is not valid"


class ExchangeNumber(BadInput):
    """The exchange does not have the next number on its channel (1, 2, ...); `expected` is that number."""

    slug, title = "exchange-number", "This exchange has the wrong number"


class Costly(BadInput):
    """An expression or a schema takes more work than allowed; nothing changed."""

    slug, title = "too-costly", "The expression or schema takes too much work"


class Unauthorized(HoraeError):
    status, slug, title = 401, "unauthorized", "A credential is needed"


class BadSignature(Unauthorized):
    """A webhook's signature is not valid or not recent; nothing changed."""

    slug, title = "bad-signature", "The signature is not valid"


class Forbidden(HoraeError):
    status, slug, title = 403, "forbidden", "This credential does not have the required rights"


class NotFound(HoraeError):
    status, slug, title, exit_code = 404, "not-found", "The requested object does not exist", 3


class Conflict(HoraeError):
    """The request is valid, but the current state does not allow it."""

    status, slug, title, exit_code = 409, "conflict", "The current state does not allow it", 4


class SessionEnded(Conflict):
    """The session is not live: the worker stops its executions and registers again."""

    slug, title = "session-ended", "This session has ended"


class SessionDetached(Conflict):
    """The store has failed over: the worker re-attaches the session, and its executions continue."""

    slug, title = "session-detached", "This session has to be re-attached"


class MasterKeyMissing(Conflict):
    """This server's master keys cannot decrypt the stored values, or it has no key to encrypt new ones."""

    slug, title = "master-key", "The master key is missing, or another one is needed"


class Gone(HoraeError):
    status, slug, title, exit_code = 410, "gone", "The requested object has expired", 3


class Stale(HoraeError):
    """If-Match names a version that is no longer current."""

    status, slug, title, exit_code = 412, "stale", "The object was changed meanwhile", 4


class TooLarge(HoraeError):
    status, slug, title, exit_code = 413, "too-large", "The payload is too large", 2


class Misdirected(HoraeError):
    """The worker belongs to another installation, perhaps a copy of this one; nothing changed."""

    status, slug, title = 421, "misdirected", "This worker belongs to another installation"


class KeyReused(HoraeError):
    """An Idempotency-Key was sent again with another body."""

    status, slug, title, exit_code = 422, "key-reused", "This idempotency key belongs to another request", 4


class ProtocolMismatch(HoraeError):
    status, slug, title, exit_code = 426, "protocol-mismatch", "Worker and server speak different protocol versions", 2


class OverQuota(HoraeError):
    """A quota or a queue's limit is exceeded; `retryAfter` is the suggested number of seconds to wait."""

    status, slug, title = 429, "over-quota", "The quota is exceeded"


class TooOften(HoraeError):
    """A request was repeated too soon; `retryAfter` is the number of seconds to wait."""

    status, slug, title = 429, "too-often", "The request was repeated too soon"


class Busy(HoraeError):
    """The server is overloaded; `retry_after` is the suggested number of seconds to wait."""

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
