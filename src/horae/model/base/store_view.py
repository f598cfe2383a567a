"""The store as the API shows it."""

from typing import Annotated

from msgspec import Meta

from horae.model.base.view import Time, View


class SealedView(View, frozen=True, kw_only=True):
    """How many sealed values open with the master keys that a server has, and what it lacks."""

    opened: int
    unopened: int
    can_seal: bool
    problem: Annotated[str | None, Meta(description="Why nothing can be sealed.")] = None
    remedy: str | None = None
    missing_keys: Annotated[
        list[str], Meta(description="Names of master keys that have sealed something here, and that it does not have.")
    ] = []


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
