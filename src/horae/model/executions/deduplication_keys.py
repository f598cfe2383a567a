"""The keys of a submission under the deduplication rules of its job."""

from collections.abc import Mapping
from hashlib import sha256

import msgspec

from horae.errors import BadInput
from horae.model.base.key_templates import fill, scope_of
from horae.model.definitions.job import Spec
from horae.model.executions.deduplication import Batch, DeduplicationKey, Unique
from horae.model.executions.parcel import Envelope
from horae.model.expressions.template import Scope


def deduplication_keys(
    spec: Spec, envelope: Envelope, item: bytes, tags: Mapping[str, str], share: str = ""
) -> tuple[DeduplicationKey, ...]:
    """Return the keys of a submission, in the order in which they are checked: the cache comes first.

    Raises BadInput when a key cannot be filled in.
    """
    rules = (spec.cache, spec.unique, spec.debounce, spec.batch)
    if not any(rules):
        return ()
    scope = scope_of(spec, item, tags)
    found = []
    if spec.cache is not None:
        key = fill(spec.cache.key, scope, "cache.key") if spec.cache.key else _whole(scope)
        found.append(DeduplicationKey(spec.cache, f"{envelope.version}:{key}"))
    if spec.unique is not None:
        found.append(DeduplicationKey(spec.unique, fill(spec.unique.key, scope, "unique.key")))
    if spec.debounce is not None:
        found.append(
            DeduplicationKey(spec.debounce, f"{envelope.version}:{fill(spec.debounce.key, scope, 'debounce.key')}")
        )
    if spec.batch is not None:
        found.append(DeduplicationKey(spec.batch, _alike(spec.batch, envelope, share, scope)))
    return tuple(found)


def unique_key(spec: Spec, item: bytes, rule: Unique | None = None) -> tuple[DeduplicationKey, ...]:
    """Return the key of an execution that no request has submitted; of the rules, only `unique` applies to it.

    `rule` overrides the job's rule.
    """
    rule = rule or spec.unique
    return () if rule is None else (DeduplicationKey(rule, fill(rule.key, scope_of(spec, item, {}), "unique.key")),)


def _whole(scope: Scope) -> str:
    """Return a key that is equal for equal params, whatever the order of their members."""
    return sha256(msgspec.json.encode(scope["params"], order="sorted")).hexdigest()


def _alike(rule: Batch, e: Envelope, share: str, scope: Scope) -> str:
    """Return a key that is equal only for submissions that could share a parcel."""
    alike = e.version, e.priority, e.lane, share, str(e.parent or ""), e.keys, fill(rule.key, scope, "batch.key")
    return msgspec.json.encode(alike).decode()


def refuse_timed(spec: Spec, *, delayed: bool, waits: bool) -> None:
    """Refuse a delay or a wait for dependencies if the job's debounce or batch decides when its executions start."""
    window = "debounce" if spec.debounce is not None else "batch" if spec.batch is not None else None
    if window is None or not (delayed or waits):
        return
    field = "delay" if delayed else "waitForDependencies"
    raise BadInput(
        f'Job "{spec.name}" has {window}, which decides when its executions begin.', f"Remove `{field}`.", field=field
    )
