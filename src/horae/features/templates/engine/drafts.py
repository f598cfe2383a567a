"""Definitions of jobs that name a template: the template, filled in with the job's values."""

from typing import Any

from horae.engine.base.refs import in_quotes, nearest
from horae.engine.definitions.job_drafts import Derivation, Derive
from horae.errors import BadInput
from horae.features.templates.model.read import read_use
from horae.features.templates.model.values import JobTemplate
from horae.features.templates.store import templates
from horae.store.contract import Store

MOST_NAMES = 1000


async def derive(store: Store, namespace: int, body: dict[str, Any]) -> tuple[dict[str, Any], Derivation]:
    """Return the complete definition of a job that names a template. Raises BadInput."""
    name, _, _ = read_use(body)
    found = await store.read(lambda: templates.named(namespace, name))
    if found is None:
        raise await _missing(store, namespace, name)
    return await derivation_from(found)(namespace, body)


def derivation_from(template: JobTemplate) -> Derive:
    """Return a function that makes definitions from this template, even if another template has its name by now."""

    async def derive(namespace: int, body: dict[str, Any]) -> tuple[dict[str, Any], Derivation]:
        return _filled(template, body)

    return derive


def _filled(template: JobTemplate, body: dict[str, Any]) -> tuple[dict[str, Any], Derivation]:
    _, values, own = read_use(body)
    if not isinstance(own.get("name"), str):
        raise BadInput("A job needs a name.", 'Add "name": "backup-eu".', field="name")
    whole, made = template.derive(own["name"], values, {k: v for k, v in own.items() if k != "name"})
    return whole, Derivation(made, template.id, template.version)


async def _missing(store: Store, namespace: int, name: str) -> BadInput:
    known = await store.read(lambda: templates.page(namespace, "", MOST_NAMES))
    near = nearest(name, [template.name for template in known])
    remedy = f"Did you mean {in_quotes(near)}?" if near else "List templates with `horae templates list`."
    return BadInput(f'There is no template named "{name}".', remedy, field="template")
