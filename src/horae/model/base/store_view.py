"""The store as the API shows it."""

from typing import Annotated

from msgspec import Meta

from horae.model.base.view import Time, View


class SealedView(View, frozen=True, kw_only=True):
    """The number of sealed values that a server can open with its master keys, and the keys that it lacks."""

    opened: int
    unopened: int
    can_seal: bool
    problem: Annotated[str | None, Meta(description="Why nothing can be sealed.")] = None
    remedy: str | None = None
    missing_keys: Annotated[
        list[str], Meta(description="Names of master keys that sealed values here and that the server lacks.")
    ] = []


class TroubleView(View, frozen=True, kw_only=True):
    """An ongoing problem, and its start."""

    problem: str
    since: Time


class StoreView(View, frozen=True, kw_only=True):
    """The state of the store; `revision` is that of its tables, `newest` the latest one that this server knows.

    `features` are the enabled features of this server. `archive` is the problem that prevents archiving, or null.
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
