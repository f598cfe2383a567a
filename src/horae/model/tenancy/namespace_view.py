"""Namespaces as the API shows them."""

from typing import TYPE_CHECKING

from horae.model.base.view import Time, View
from horae.model.fields.derived import view
from horae.model.tenancy.namespace import NAMESPACE


class _Named(View, frozen=True, kw_only=True):
    name: str


if TYPE_CHECKING:  # at run time the fields are derived from the table

    class _Defined(_Named, frozen=True, kw_only=True):
        pass
else:
    _Defined = view(NAMESPACE, "NamespaceDefinition", "The fields of a namespace's definition.", _Named)


class NamespaceView(_Defined, frozen=True, kw_only=True):
    """A namespace (a tenant), and the defaults of its jobs and queues."""

    state: str = "active"
    created_at: Time
    updated_at: Time
