"""Namespaces as the API shows them."""

from typing import Annotated, Any

from msgspec import Meta

from horae.model.base.view import Time, View


class NamespaceView(View, frozen=True, kw_only=True):
    """A namespace: a tenant, and what holds for all that is in it."""

    name: str
    description: str = ""
    weight: Annotated[float, Meta(description="Of what servers do for all namespaces, against that of others.")] = 1.0
    retention: Annotated[
        dict[str, str], Meta(description="How long ended executions are kept, by outcome; others as the servers say.")
    ]
    archive: Annotated[list[str], Meta(description="Outcomes that go to the archive when they are not kept any more.")]
    defaults: Annotated[dict[str, Any], Meta(description="Of jobs that do not say it themselves.")]
    queue_policy: Annotated[Any, Meta(description="Of queues that say nothing of one; null for `priority`.")] = None
    state: str = "active"
    created_at: Time
    updated_at: Time
