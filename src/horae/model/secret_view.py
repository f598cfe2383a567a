"""Secrets as the API shows them: everything but their values."""

from horae.model.view import View


class SecretView(View, frozen=True, kw_only=True):
    """A secret; `version` counts the values it has had, `jobs` are those whose definition refers to it."""

    name: str
    version: int
    created_at: str
    updated_at: str
    jobs: list[str] | None = None


class RotationView(View, frozen=True, kw_only=True):
    """What a rotation did: how many secrets were sealed anew, how many were sealed with the first key already."""

    resealed: int
    current: int
