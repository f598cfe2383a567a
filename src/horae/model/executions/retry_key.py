"""Executions that run a dead letter again are marked, so that the letter opens again if they are cancelled."""

from msgspec import structs

from horae.model.admission.keys import encode_keys, keys_of
from horae.model.executions.parcel import Envelope


def by_retry(envelope: Envelope) -> Envelope:
    """An envelope of executions that run dead letters again."""
    return structs.replace(envelope, keys=encode_keys(structs.replace(keys_of(envelope.keys), again=True)))
