"""A queue: a named line of executions, with a policy that says who is next."""

from typing import Literal

from msgspec import Struct

from horae.model.policy import Policy

DEFAULT_QUEUE = "default"  # of a namespace that named no other
QueueState = Literal["active", "draining"]


class QueueSpec(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a user says about a queue; each field that is left out takes its default."""

    policy: Policy = Policy()


class Queue(Struct, frozen=True, kw_only=True):
    """A queue as it stands. `ranked` is the revision by whose policy what is queued was ordered last."""

    id: int
    namespace: int
    name: str
    spec: QueueSpec = QueueSpec()
    state: QueueState = "active"  # draining: it accepts nothing new by request
    is_default: bool = False
    revision: int = 1
    ranked: int = 1

    @property
    def policy(self) -> Policy:
        return self.spec.policy
