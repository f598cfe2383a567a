"""Key templates: texts with expressions, such as `"${params.customer}"`, from which the keys of executions are made.

A template is filled with the params, the tags and the job's name of an execution. Executions for which the result is
equal share a key. A submission whose key cannot be filled in is refused, because with a wrong key it would escape its
limit.
"""

from collections.abc import Mapping

import msgspec

from horae.errors import BadInput, Costly
from horae.model.definitions.job import Spec
from horae.model.expressions.meter import record_over_budget
from horae.model.expressions.template import Scope, TemplateError, TooCostly, compile_template, render_small
from horae.model.fields.values import KNOWN

MOST_KEY = 512  # characters of a filled key


def scope_of(spec: Spec, item: bytes, tags: Mapping[str, str]) -> Scope:
    """Return the values that key templates can use: the item's params merged over the job's, the job's name, the tags.

    `item` has the params as JSON.
    """
    params = {**spec.params, **(msgspec.json.decode(item) or {})}
    return {"params": params, "job": {"name": spec.name}, "tags": {**spec.tags, **tags}}


def fill(template: str, scope: Scope, field: str) -> str:
    """Fill a template. Raises BadInput, naming the field, when it cannot be filled."""
    if "${" not in template:
        return template
    try:
        key = render_small(compile_template(template, field, KNOWN), scope)
    except (TooCostly, Costly) as error:
        remedy = f'The job\'s {field} is "{template}": make it simpler, or give smaller params.'
        told = f"The key of {field} cannot be filled in: {error.detail if isinstance(error, Costly) else f'{error}.'}"
        record_over_budget(told, own=isinstance(error, Costly) or error.is_own)
        raise Costly(told, remedy, field=field) from None
    except TemplateError as error:
        remedy = f'The job\'s {field} is "{template}": give the params or tags that it uses.'
        raise BadInput(f"The key of {field} cannot be filled in: {error}.", remedy, field=field) from None
    if len(key) > MOST_KEY or "\0" in key:
        raise BadInput(
            f"The key of {field} has {len(key)} characters, or contains a NUL character.",
            f'The job\'s {field} is "{template}": at most {MOST_KEY} characters are allowed.',
            field=field,
        )
    return key
