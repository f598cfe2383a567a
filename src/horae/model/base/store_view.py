"""The store as the API shows it."""

from horae.model.base.view import Time, View
from horae.model.tenancy.sealed_view import SealedView


class TroubleView(View, frozen=True, kw_only=True):
    """A problem that goes on, and since when."""

    problem: str
    since: Time


class StoreView(View, frozen=True, kw_only=True):
    """What the store says of itself; `revision` is its tables', `newest` the one this server knows.

    `features` are those that are on in this server. `archive` says why nothing can be archived, and is null while
    nothing is wrong.
    """

    kind: str
    version: str
    revision: str | None
    newest: str
    settings: dict[str, str]
    free_bytes: int | None
    sealed: SealedView
    features: tuple[str, ...] = ()
    archive: TroubleView | None = None
