"""The options of `horae queues set`, built from the field tables of queues and policies."""

from dataclasses import replace
from typing import Any

import click
from msgspec import structs

from horae.cli.fields import changes_of, option_of, unset_option, values_of, with_options
from horae.model.admission.policy import KINDS, POLICIES
from horae.model.admission.queue import QUEUE
from horae.model.fields.table import Row

_OF_POLICIES = tuple((kind, table, row) for kind, table in POLICIES.tables.items() for row in table.rows)


def _of(kind: str, row: Row) -> Row:
    """Return the row with the policy's name at the start of its help."""
    text = f"With --policy {kind}: {row.field.help[:1].lower()}{row.field.help[1:]}"
    return structs.replace(row, field=replace(row.field, help=text))


definition_options = with_options(
    (
        *(option_of(row, QUEUE) for row in QUEUE.rows),
        *(option_of(_of(kind, row), table) for kind, table, row in _OF_POLICIES),
        unset_option(QUEUE.rows),
    )
)


def definition_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a queue's definition that the options give."""
    body = changes_of(QUEUE.rows, given)
    rules = values_of((row for _, _, row in _OF_POLICIES), given)
    policy = body.get("policy")
    if rules and policy is None:
        raise click.UsageError(f"Name the policy of these options: --policy {'|'.join(KINDS)}.")
    if rules and isinstance(policy, dict):
        raise click.UsageError("A policy as JSON must be complete: remove the options of single policy fields.")
    return {**body, "policy": {"kind": policy, **rules}} if rules else body
