"""Secrets as the API shows them, without their values."""

from horae.model.base.view import View


class SecretView(View, frozen=True, kw_only=True):
    """A secret. `version` counts its values; `jobs` are those that refer to it in their definition or for a webhook."""

    name: str
    version: int
    created_at: str
    updated_at: str
    jobs: list[str] | None = None


class RotationView(View, frozen=True, kw_only=True):
    """The result of a rotation of the master key: the numbers of values sealed anew, and of values already current."""

    resealed: int
    current: int
