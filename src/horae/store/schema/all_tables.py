"""Import all modules that define tables, so that `metadata` has all of them, also those of disabled features."""

from importlib import import_module

from horae.feature import installed
from horae.store.schema import admission, definitions, executions, fleet, tenancy, workflows
from horae.store.schema.columns import metadata

for _feature in installed():
    if _feature.tables:
        import_module(_feature.tables)

__all__ = ("admission", "definitions", "executions", "fleet", "metadata", "tenancy", "workflows")
