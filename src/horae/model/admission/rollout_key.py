"""Executions whose version a rollout chose are marked, so that what becomes of them is counted."""

from msgspec import structs

from horae.env import Instant
from horae.model.admission.keys import encode_keys, keys_of
from horae.model.executions.parcel import Envelope


def by_rollout(envelope: Envelope, since: Instant) -> Envelope:
    """An envelope of executions that a rollout chose; `since` tells which."""
    keys = structs.replace(keys_of(envelope.keys), rollout=since)
    return structs.replace(envelope, keys=encode_keys(keys))
