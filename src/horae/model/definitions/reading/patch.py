"""Changes of a definition: a JSON merge patch (RFC 7396) on its rendered form."""

from typing import Any

from horae.errors import BadInput
from horae.model.admission.rate import remove_lone_burst
from horae.model.definitions.job import JOB, Spec
from horae.model.definitions.reading.task import PARSERS
from horae.model.definitions.reading.timeouts import with_run
from horae.model.definitions.reading.write import render_definition
from horae.model.definitions.template_use import source_of
from horae.model.fields.values import an_object

_MERGED = frozenset(JOB.where(lambda field: field.merges))


def merge_definition(current: dict[str, Any], patch: Any) -> dict[str, Any]:
    """Apply a patch to a definition; null resets a field to its default.

    Fields such as `params` and `tags` are merged key by key, as RFC 7396 says; every other field is replaced as a
    whole. A new task replaces the old one, even if it is of another kind.
    """
    given = with_run(an_object(patch, "body", 'Send the fields to change, such as {"timeout": "5m"}.'))
    if "name" in given and given["name"] is None:
        raise BadInput("A job needs a name.", "Give another name, or remove `name`.", field="name")
    new_task = any(given.get(kind) is not None for kind in PARSERS)
    merged = {name: value for name, value in current.items() if not (new_task and name in PARSERS)}
    for name, value in given.items():
        if value is None:
            merged.pop(name, None)
        elif name in _MERGED and isinstance(value, dict) and isinstance(merged.get(name), dict):
            merged[name] = merge(merged[name], value)
        else:
            merged[name] = value
    remove_lone_burst(merged, given)
    return merged


def patched_form(spec: Spec, patch: Any) -> dict[str, Any]:
    """Return the form to which a patch applies.

    For a job that uses a template, that is the definition that the user wrote, unless the patch removes the template.
    """
    rendered = render_definition(spec)
    if spec.made is None:
        return rendered
    if isinstance(patch, dict) and "template" in patch and patch["template"] is None:
        return {field: value for field, value in rendered.items() if field not in ("template", "with")}
    return source_of(spec.name, spec.made)


def merge(current: Any, patch: Any) -> Any:
    """Return the value with the patch applied: null removes a member, objects are merged, all else is replaced."""
    if not isinstance(patch, dict):
        return patch
    result = dict(current) if isinstance(current, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge(result.get(name), value)
    return result
