"""Namespaces as the API shows them."""

from typing import TYPE_CHECKING

from horae.model.base.view import Time, View
from horae.model.fields.derived import view
from horae.model.tenancy.namespace import NAMESPACE


class _Named(View, frozen=True, kw_only=True):
    name: str


if TYPE_CHECKING:  # nothing in Python reads the fields that are made of the table

    class _Defined(_Named, frozen=True, kw_only=True):
        pass
else:
    _Defined = view(NAMESPACE, "NamespaceDefinition", "The fields of a namespace's definition.", _Named)


class NamespaceView(_Defined, frozen=True, kw_only=True):
    """A namespace: a tenant, and what holds for all that is in it."""

    state: str = "active"
    created_at: Time
    updated_at: Time
