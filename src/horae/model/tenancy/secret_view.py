"""Secrets as the API shows them: everything but their values."""

from horae.model.base.view import View


class SecretView(View, frozen=True, kw_only=True):
    """A secret; `version` counts the values it has had, `jobs` refer to it in their definition or for a webhook."""

    name: str
    version: int
    created_at: str
    updated_at: str
    jobs: list[str] | None = None


class RotationView(View, frozen=True, kw_only=True):
    """What a rotation did: how many secrets, webhooks and channels were sealed anew, and how many need not be."""

    resealed: int
    current: int
