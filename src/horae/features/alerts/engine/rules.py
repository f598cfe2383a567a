"""Operations on alert rules: write, read, pause, resume and delete."""

from collections.abc import Callable
from typing import Any

from horae.engine.base.refs import in_quotes, nearest
from horae.env import Instant
from horae.errors import BadInput, Conflict, NotFound, Stale
from horae.features.alerts.model.rule import RULE, AnyRule, CircuitOpen, RuleState
from horae.features.alerts.model.view import RuleView
from horae.features.alerts.store import alerts
from horae.features.alerts.store import rules as moves
from horae.features.alerts.store.rules import StoredRule
from horae.model.base.cursor import check_limit, make_cursor, read_cursor
from horae.model.base.instant import format_instant
from horae.model.base.view import Page
from horae.model.fields.values import NAME, a_name, an_object
from horae.store.contract import Store
from horae.store.script import Script

MOST_RULES = 500  # rules of a namespace


class AlertRules:
    """The operations on alert rules. `changed` is called after a change, so that the rules are evaluated soon."""

    def __init__(self, store: Store, changed: Callable[[], object]) -> None:
        self._store, self._changed = store, changed

    async def create(self, namespace: int, body: Any) -> RuleView:
        """Create a rule. Raises BadInput, Conflict."""
        given = an_object(body, "body", 'Send {"name": "...", "kind": "...", "channels": ["..."]}.')
        if "name" not in given:
            raise BadInput("A rule needs a name.", 'Add "name": "nightly".', field="name")
        view, _ = await self.put(namespace, given["name"], body, new=True)
        return view

    async def put(
        self, namespace: int, name: str, body: Any, *, if_match: int | None = None, new: bool = False
    ) -> tuple[RuleView, bool]:
        """Create or replace the rule of this name; return it, and whether it is new.

        Raises BadInput, Conflict, Stale.
        """
        name = a_name(name, "name", NAME)
        rule = self._read(name, body)
        kept, is_new = await self._store.change(lambda now: _put(namespace, name, rule, if_match, now, new=new))
        self._changed()
        return await self._shown(kept), is_new

    async def get(self, namespace: int, name: str) -> RuleView:
        """Return a rule. Raises NotFound."""
        return await self._shown(await self.stored(namespace, name))

    async def list(self, namespace: int, *, limit: int = 50, cursor: str | None = None) -> Page[RuleView]:
        """Return a page of rules, ordered by name."""
        after, most = "" if cursor is None else read_cursor(cursor, str), check_limit(limit)
        found = await self._store.read(lambda: moves.rules(namespace, after, most + 1))
        more = make_cursor(found[most - 1].name) if len(found) > most else None
        firing = await self._store.read(lambda: alerts.firing_by_rule(namespace)) if found else {}
        return Page(items=[_view(one, firing.get(one.name, 0)) for one in found[:most]], next_cursor=more)

    async def set_state(self, namespace: int, name: str, state: RuleState) -> RuleView:
        """Pause or resume a rule. Pausing ends its alerts without notices. Raises NotFound."""
        await self.stored(namespace, name)

        def script(now: Instant) -> Script[StoredRule | None]:
            yield from moves.lock(namespace)
            present = yield from moves.rule(namespace, name, lock=True)
            if present is not None and present.state != state:
                yield from moves.set_rule_state(namespace, name, state, now)
                if state == "paused":
                    yield from moves.end_open(namespace, name, now)
            return (yield from moves.rule(namespace, name))

        stored = await self._store.change(script)
        if stored is None:
            raise await self._not_found(namespace, name)
        self._changed()
        return await self._shown(stored)

    async def delete(self, namespace: int, name: str) -> None:
        """Delete a rule and end its alerts. Raises NotFound."""
        await self.stored(namespace, name)

        def script(now: Instant) -> Script[None]:
            yield from moves.lock(namespace)
            yield from moves.delete_rule(namespace, name)
            yield from moves.end_open(namespace, name, now)

        await self._store.change(script)

    async def stored(self, namespace: int, name: str) -> StoredRule:
        """Return a rule as it is stored. Raises NotFound."""
        found = await self._store.read(lambda: moves.rule(namespace, name))
        if found is None:
            raise await self._not_found(namespace, name)
        return found

    @staticmethod
    def _read(name: str, body: Any) -> AnyRule:
        rule: AnyRule = RULE.read(body)
        if isinstance(body, dict) and body.get("name", name) != name:
            raise BadInput("The name in the body is not the name in the path.", "Send the same name.", field="name")
        return rule

    async def _shown(self, stored: StoredRule) -> RuleView:
        firing = await self._store.read(lambda: alerts.firing_by_rule(stored.namespace))
        return _view(stored, firing.get(stored.name, 0))

    async def _not_found(self, namespace: int, name: str) -> NotFound:
        known = [one.name for one in await self._store.read(lambda: moves.rules(namespace, "", 1000))]
        near = nearest(name, known)
        remedy = f"Did you mean {in_quotes(near)}?" if near else "List them with `horae alerts rules list`."
        return NotFound(f'There is no alert rule "{name[:128]}".', remedy, rule=name[:128])


def _view(stored: StoredRule, firing: int) -> RuleView:
    return RuleView(
        name=stored.name, kind=stored.rule.kind, state=stored.state, description=stored.rule.description,
        severity=stored.rule.severity, channels=list(stored.rule.channels), definition=RULE.write(stored.rule),
        firing=firing, version=stored.revision, created_at=format_instant(stored.created_at),
        updated_at=format_instant(stored.updated_at),
    )  # fmt: skip


def _put(
    namespace: int, name: str, rule: AnyRule, if_match: int | None, now: Instant, *, new: bool
) -> Script[tuple[StoredRule, bool]]:
    yield from moves.lock(namespace)
    present = yield from moves.rule(namespace, name, lock=True)
    if present is not None and new:
        raise Conflict(f'There is an alert rule "{name}" already.', "Change it with PUT.", rule=name)
    if if_match is not None and if_match != (None if present is None else present.revision):
        raise Stale(f'The rule "{name}" was changed meanwhile.', "Read it again and repeat your change.")
    missing = sorted({*rule.channels} - (yield from moves.channels(namespace, rule.channels)).keys())
    if missing:
        remedy = f"Create it first: `horae alerts channels put {missing[0][:60]} ...`."
        raise BadInput(f'There is no channel "{missing[0][:60]}".', remedy, field="channels")
    if present is None and len((yield from moves.rules(namespace, "", MOST_RULES))) == MOST_RULES:
        raise Conflict(
            f"There are {MOST_RULES} rules already.", 'Let one rule watch several jobs by a pattern, such as "etl-*".'
        )
    if present is not None and present.rule == rule:
        return present, False
    if present is not None and present.rule.kind != rule.kind:
        yield from moves.end_open(namespace, name, now)
    elif present is not None and present.rule.subjects != rule.subjects:
        opened = yield from alerts.open_alerts(namespace, name)
        yield from alerts.end([one.id for one in opened if not rule.covers(_named(rule, one.subject))], now)
    return (yield from moves.put_rule(namespace, name, rule, now)), present is None


def _named(rule: AnyRule, subject: str) -> str:
    """Return the name to compare with a rule's patterns: a subject, or `job` if a circuit's subject is `job:key`."""
    return subject.partition(":")[0] if isinstance(rule, CircuitOpen) else subject
