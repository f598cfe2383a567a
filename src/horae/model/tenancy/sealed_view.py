"""What of a store's sealed values a server can open."""

from typing import Annotated

from msgspec import Meta

from horae.model.base.view import View


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
