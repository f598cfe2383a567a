"""The order in which definitions that refer to each other are applied: dependencies first.

Definitions are used as they were sent, before validation, so any part may have any type.
"""

from collections.abc import Callable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from horae.errors import BadInput
from horae.model.triggers.calendars.read import references_in
from horae.model.workflows.reading.workflow import INSIDE

Document = dict[str, Any]


def order_of_jobs(documents: Sequence[Document]) -> list[int]:
    """Return the positions of jobs, each after the jobs that it depends on or runs."""
    return _order(documents, needed_by, "jobs", "These jobs depend on each other in a circle")


def order_of_calendars(documents: Sequence[Document]) -> list[int]:
    """Return the positions of calendars, each after the calendars that it refers to."""
    return _order(documents, references_in, "calendars", "These calendars refer to each other in a circle")


def order_of_templates(documents: Sequence[Document]) -> list[int]:
    """Return the positions of templates, which do not depend on each other."""
    return _order(documents, lambda _: set(), "templates", "")


def needed_by(document: Document) -> set[str]:
    """Return the names of the jobs that a definition depends on or runs."""
    dependencies = document.get("dependencies")
    named = [one.get("job") if isinstance(one, dict) else one for one in _listed(dependencies)]
    return {one for one in named if isinstance(one, str)} | set(_run_by(document.get("workflow")))


def _run_by(part: Any) -> Iterator[str]:
    """Yield the jobs that steps name, at any depth."""
    if isinstance(part, list):
        for one in part:
            yield from _run_by(one)
    elif isinstance(part, dict):
        for named in (part.get("job"), part.get("undo")):
            if isinstance(named, str):
                yield named
        for field in INSIDE:
            yield from _run_by(part.get(field))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _order(documents: Sequence[Document], needs: Callable[[Document], set[str]], kind: str, circle: str) -> list[int]:
    """Sort by dependencies. Refuse two definitions with the same name, because the second would replace the first."""
    numbers: dict[str, int] = {}
    for number, document in enumerate(documents):
        name = document.get("name")
        if isinstance(name, str) and numbers.setdefault(name, number) != number:
            remedy = "Remove or rename one of them. Nothing was applied."
            raise BadInput(f"{name!r} is defined twice.", remedy, field=f"{kind}[{number}].name")
    graph = {
        number: {numbers[name] for name in needs(document) if numbers.get(name, number) != number}
        for number, document in enumerate(documents)
    }
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        names = [str(documents[number].get("name")) for number in error.args[1]]
        raise BadInput(
            f"{circle}: {' -> '.join(names)}.", "Break the circle. Nothing was applied.", field=kind
        ) from None
