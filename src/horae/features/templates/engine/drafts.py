"""Jobs that are made from templates: the template of a name, filled in with a job's values."""

from typing import Any
from uuid import UUID

from msgspec import Struct, structs

from horae.engine.base.refs import in_quotes, nearest
from horae.errors import BadInput
from horae.features.templates.model.read import read_use
from horae.features.templates.model.values import JobTemplate
from horae.features.templates.store import templates
from horae.model.definitions.made import Made
from horae.model.definitions.reading.read import Definition
from horae.store.contract import Store

MOST_NAMES = 1000


class Derived(Struct, frozen=True):
    """What a job was made from, and by which version of it."""

    made: Made
    template: UUID
    version: int

    def marked(self, definition: Definition) -> Definition:
        """A definition that tells where it comes from."""
        spec = structs.replace(definition.spec, made=self.made)
        return structs.replace(definition, spec=spec, derived=(self.template, self.version))


async def derive(
    store: Store, namespace: int, body: dict[str, Any], template: JobTemplate | None = None
) -> tuple[dict[str, Any], Derived]:
    """The whole definition that a body means by its template, or by the one that is given. Raises BadInput."""
    name, values, own = read_use(body)
    found = template or await store.read(lambda: templates.named(namespace, name))
    if found is None:
        raise await _missing(store, namespace, name)
    if not isinstance(own.get("name"), str):
        raise BadInput("A job needs a name.", 'Add "name": "backup-eu".', field="name")
    whole, made = found.derive(own["name"], values, {k: v for k, v in own.items() if k != "name"})
    return whole, Derived(made, found.id, found.version)


async def _missing(store: Store, namespace: int, name: str) -> BadInput:
    known = await store.read(lambda: templates.page(namespace, "", MOST_NAMES))
    near = nearest(name, [template.name for template in known])
    remedy = f"Did you mean {in_quotes(near)}?" if near else "List templates with `horae templates list`."
    return BadInput(f'There is no template named "{name}".', remedy, field="template")
