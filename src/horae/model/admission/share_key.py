"""The share of a fair queue that an execution uses: by its job, its caller, or a template."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from horae.errors import BadInput
from horae.model.admission.policy import FairPolicy
from horae.model.definitions.job import Spec
from horae.model.expressions.template import TemplateError, as_text, compile_template, render_small
from horae.model.fields.values import KNOWN

MOST_SHARE = 256  # characters
_PARAM = re.compile(r"\$\{\s*params\.([A-Za-z_]\w*)\s*\}")
_decode = msgspec.json.Decoder().decode

Params = Mapping[str, Any]
Reader = Callable[[Spec, Params, Mapping[str, str], str], str]  # (spec, params, tags, caller) -> share


def share_of(policy: FairPolicy, spec: Spec, item: bytes, tags: Mapping[str, str], caller: str) -> str:
    """Return the share that an execution with these params uses. Raises BadInput when the template cannot be filled."""
    share = _reader(policy.by)(spec, _decode(item) or {}, tags, caller)
    if len(share) > MOST_SHARE or "\0" in share:
        detail = f'The share that "{policy.by}" gives has {len(share)} characters, or contains a NUL character.'
        raise BadInput(detail, f"At most {MOST_SHARE} are allowed.", field="params")
    return share


def shares_of(
    policy: FairPolicy, spec: Spec, items: Sequence[bytes], tags: Mapping[str, str], caller: str
) -> tuple[list[str], dict[int, BadInput]]:
    """Return the shares of many items, and by index the errors of items whose share cannot be determined.

    If the queue is divided by just a param, only that param is decoded, for all items at once.
    """
    if policy.by in ("job", "caller"):
        return [share_of(policy, spec, b"{}", tags, caller)] * len(items), {}
    one = _PARAM.fullmatch(policy.by)
    named = None if one is None else _named_in(one[1], items)
    if named is not None:
        return named, {}
    found: list[str] = []
    wrong: dict[int, BadInput] = {}
    for i, item in enumerate(items):
        try:
            found.append(share_of(policy, spec, item, tags, caller))
        except BadInput as error:
            wrong[i] = error
            found.append("")
    return found, wrong


def _named_in(param: str, items: Sequence[bytes]) -> list[str] | None:
    """Return the shares of items if each of them has a short text in this param, else None."""
    try:
        found = [one.value for one in _param_decoder(param)(b"[%b]" % b",".join(items))]
    except (ValueError, RecursionError):
        return None
    return found if all(len(share) <= MOST_SHARE and "\0" not in share for share in set(found)) else None


@lru_cache(maxsize=256)
def _param_decoder(name: str) -> Callable[[bytes], Any]:
    """Return a decoder that reads one param of many items."""
    fields: list[Any] = [("value", str, msgspec.field(name=name))]
    return msgspec.json.Decoder(list[msgspec.defstruct("OneParam", fields)]).decode  # type: ignore[misc]


def share_or_unnamed(policy: FairPolicy, spec: Spec, item: bytes, tags: Mapping[str, str]) -> str:
    """Return the share of an execution without a caller; "" if the template cannot be filled."""
    try:
        return share_of(policy, spec, item, tags, "")
    except BadInput:
        return ""


@lru_cache(maxsize=256)
def _reader(by: str) -> Reader:
    if by == "job":
        return lambda spec, params, tags, caller: spec.name
    if by == "caller":
        return lambda spec, params, tags, caller: caller[:MOST_SHARE]
    one = _PARAM.fullmatch(by)
    return _param_reader(one[1], by) if one else _template_reader(by)


def _param_reader(name: str, by: str) -> Reader:
    """Return a reader of one param. This is the common case and needs no evaluation of an expression."""

    def read(spec: Spec, params: Params, tags: Mapping[str, str], caller: str) -> str:
        value = params.get(name, spec.params.get(name, _NOTHING))
        if value is _NOTHING:
            raise _unfilled(by, f"there is no {name!r}")
        return value if isinstance(value, str) else as_text(value)

    return read


def _template_reader(by: str) -> Reader:
    template = compile_template(by, "by", KNOWN)

    def read(spec: Spec, params: Params, tags: Mapping[str, str], caller: str) -> str:
        scope = {"params": {**spec.params, **params}, "job": {"name": spec.name}, "tags": {**spec.tags, **tags}}
        try:
            return render_small(template, scope)
        except TemplateError as error:
            raise _unfilled(by, str(error)) from None

    return read


_NOTHING = object()


def _unfilled(by: str, why: str) -> BadInput:
    remedy = f'The queue is divided by "{by}": give the params or tags that it uses, or change the queue\'s policy.'
    return BadInput(f"The share of this execution cannot be determined: {why}.", remedy, field="params")
