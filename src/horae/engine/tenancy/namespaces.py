"""Namespaces: create, show, change and delete. A credential sees its own namespace only, unless it may see all."""

from collections.abc import Mapping
from typing import Any

import structlog

from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.settings import EngineSettings
from horae.env import Env
from horae.errors import Conflict, Forbidden, NotFound
from horae.model.base.duration import format_duration
from horae.model.base.instant import format_instant
from horae.model.fields.values import NAME, a_name, an_object
from horae.model.tenancy.namespace import (
    DEFAULT_NAMESPACE,
    NAMESPACE,
    Namespace,
    NamespaceDefinition,
    merge_namespace,
    parse_namespace,
    show_namespace,
)
from horae.model.tenancy.namespace_view import NamespaceView
from horae.model.tenancy.principal import Principal
from horae.store.contract import Store
from horae.store.tenancy import namespaces as moves

MOST = 10_000
_INSTALLATION = 'This needs a credential with the permission "installation": `horae keys create NAME --role admin'
_INSTALLATION += " --permission installation`."
log = structlog.get_logger("horae.engine")


class Namespaces:
    """Operations on namespaces."""

    def __init__(
        self, env: Env, store: Store, directory: LocalDirectory, hints: Hints, settings: EngineSettings
    ) -> None:
        self._env, self._store, self._directory, self._hints = env, store, directory, hints
        self._retention = settings.retention

    async def create(self, body: Any) -> NamespaceView:
        """Create a namespace with its default queue. Raises BadInput, Conflict."""
        given = an_object(body, "body", 'Send an object such as {"name": "billing"}.')
        name = a_name(given.get("name"), "name", NAME)
        definition = parse_namespace({field: value for field, value in given.items() if field != "name"})
        if len(self._directory.namespaces) >= MOST:
            raise Conflict(f"There are {MOST} namespaces, and no more are allowed.", "Delete some that nobody uses.")
        if await self._store.change(lambda now: moves.create(name, definition, now)) is None:
            raise Conflict(f'There is a namespace "{name}" already.', "Change it with `horae namespaces set`.")
        log.info("namespace made", namespace=name)
        await self.reload()
        return await self._shown(name)

    async def list(self, principal: Principal) -> list[NamespaceView]:
        """Return the namespaces that a credential may see: its own, or all."""
        found = await self._store.read(moves.all_namespaces)
        return [
            view(namespace)
            for namespace in found
            if namespace.id == principal.namespace or principal.may("installation")
        ]

    async def find(self, principal: Principal, name: str) -> Namespace:
        """Return a namespace by name. Raises NotFound also if the credential may not see it."""
        found = await self._store.read(lambda: moves.by_name(name))
        if found is None or (found.id != principal.namespace and not principal.may("installation")):
            raise no_such_namespace(name)
        return found

    async def get(self, principal: Principal, name: str) -> NamespaceView:
        """Return the view of a namespace by name."""
        return view(await self.find(principal, name))

    async def edit(self, principal: Principal, name: str, patch: Any) -> NamespaceView:
        """Change some fields of a namespace; null resets a field to its default."""
        await self.find(principal, name)

        def make(before: Namespace) -> NamespaceDefinition:
            definition = parse_namespace(merge_namespace(before, patch))
            if not principal.may("installation"):
                self._refuse(before, definition)
            return definition

        if await self._store.change(lambda now: moves.change(name, make, now)) is None:
            raise no_such_namespace(name)
        await self.reload()
        return await self._shown(name)

    def _refuse(self, before: Namespace, definition: NamespaceDefinition) -> None:
        """Refuse changes at the expense of other tenants. Raises Forbidden."""
        if definition.weight != before.weight:
            raise Forbidden("A namespace cannot change its own weight.", _INSTALLATION)
        for outcome, span in definition.retention.items():
            if span > max(self._retention, before.spec.retention.get(outcome, 0)):
                most = format_duration(self._retention)
                raise Forbidden(f"A namespace cannot set a retention of its own above {most}.", _INSTALLATION)

    async def delete(self, principal: Principal, name: str) -> None:
        """Delete a namespace with its keys. Raises NotFound, and Conflict while it has jobs, executions or workers."""
        found = await self.find(principal, name)
        if found.name == DEFAULT_NAMESPACE:
            raise Conflict("The first namespace cannot be deleted.", "Delete what is in it, or leave it empty.")
        alive = await self._store.change(lambda now: moves.delete(found.id, now))
        if alive is not None:
            remaining = ", ".join(_counted(alive))
            remedy = "Delete its jobs, cancel what has not ended and stop its workers, or erase all of it:"
            remedy += f" `horae namespaces erase {name} --definitions`."
            raise Conflict(f'Namespace "{name}" still has {remaining}.', remedy)
        log.info("namespace deleted", namespace=name)
        await self.reload()

    async def _shown(self, name: str) -> NamespaceView:
        found = await self._store.read(lambda: moves.by_name(name))
        if found is None:
            raise no_such_namespace(name)
        return view(found)

    async def reload(self) -> None:
        """Reload the namespaces, on this and on the other servers."""
        await self._directory.load()
        self._hints.send(Hint(queues=True))


def _counted(alive: moves.LiveContents) -> list[str]:
    amounts: Mapping[str, int] = {
        "job": alive.jobs, "execution": alive.executions, "worker": alive.workers,
    }  # fmt: skip
    return [f"{count:,} {word}{'' if count == 1 else 's'}" for word, count in amounts.items() if count]


def view(namespace: Namespace) -> NamespaceView:
    """Return a namespace as the API shows it."""
    return NamespaceView(
        name=namespace.name,
        **NAMESPACE.keywords(show_namespace(namespace)),
        state=namespace.state,
        created_at=format_instant(namespace.created_at),
        updated_at=format_instant(namespace.updated_at),
    )


def no_such_namespace(name: str) -> NotFound:
    """Return the error for a namespace that does not exist, or that the caller may not see."""
    return NotFound(f'There is no namespace "{name[:60]}" for this credential.', "See `horae namespaces list`.")
