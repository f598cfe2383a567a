"""The store as the API shows it."""

from typing import Annotated

from msgspec import Meta

from horae.model.base.view import Time, View


class SealedValuesView(View, frozen=True, kw_only=True):
    """The numbers of sealed (encrypted) values that a server can and cannot open, and the master keys that it lacks.

    Only a limited number of values is checked.
    """

    decryptable: int
    undecryptable: int
    can_seal: bool
    problem: Annotated[str | None, Meta(description="Why the server cannot seal new values.")] = None
    remedy: str | None = None
    missing_keys: Annotated[
        list[str], Meta(description="Names of the master keys that stored values need and that the server lacks.")
    ] = []


class OngoingProblem(View, frozen=True, kw_only=True):
    """An ongoing problem, and its start."""

    problem: str
    since: Time


class StoreView(View, frozen=True, kw_only=True):
    """The state of the store.

    `revision` is the schema revision of its tables, `newestRevision` the latest revision that this server knows.
    `features` are the enabled features of this server. `archiveProblem` is the problem that prevents archiving, or
    null.
    """

    kind: str
    version: str
    revision: str | None
    newest_revision: str
    settings: dict[str, str]
    free_bytes: int | None
    sealed: SealedValuesView
    features: tuple[str, ...] = ()
    archive_problem: OngoingProblem | None = None
