"""The parameters of a job's function: their JSON schema, and the compiled conversion of params to arguments of a call.

Annotations have the meaning that msgspec gives them: dataclasses, Structs, enums, dates, unions. A parameter without an
annotation accepts anything. A parameter named `ctx`, or annotated with the context's class, receives the context and is
not a parameter of the job.
"""

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from types import SimpleNamespace
from typing import Any, get_type_hints

import msgspec
from msgspec import NODEFAULT, Raw, Struct
from msgspec.structs import asdict, astuple

from horae.errors import BadInput

CONTEXT = "__horae_context__"  # attribute that marks the class of contexts, which this layer must not import
_PLAIN = (str, int, float, bool, bytes, type(None))
NOT_FITTING = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

Call = tuple[tuple[Any, ...], dict[str, Any]]
Bind = Callable[[bytes | Raw, Any], Call]


class BadParams(ValueError):
    """The params of an execution do not fit its function."""


class Parameter(Struct, frozen=True):
    """One parameter of a job's function."""

    name: str
    type: Any
    default: Any = NODEFAULT
    kind: int = inspect.Parameter.POSITIONAL_OR_KEYWORD


class Signature(Struct, frozen=True):
    """The parameters of a function, without the context."""

    function: str
    parameters: tuple[Parameter, ...]
    context: str | None = None  # the parameter that receives the context
    rest: bool = False  # the function accepts further params as **kwargs
    first: tuple[str, ...] = ()  # the positional-only parameters, perhaps with the context

    @property
    def by_position(self) -> list[str]:
        """The names of the parameters that a call may fill by position."""
        return [parameter.name for parameter in self.parameters if parameter.kind in _POSITIONAL]

    @property
    def schema(self) -> dict[str, Any]:
        """Return a self-contained JSON schema of the params object."""
        schema = msgspec.json.schema(_struct(self, {}))
        definitions = schema.pop("$defs")
        top: dict[str, Any] = definitions.pop(schema["$ref"].rsplit("/", 1)[1])
        top["additionalProperties"] = self.rest
        return {**top, "$defs": definitions} if definitions else top

    def binder(self, defaults: Mapping[str, Any] = {}) -> Bind:
        """Compile the conversion of an item's JSON to the arguments of a call.

        `defaults`, the params of the job, replace missing params; they take precedence over the function's own
        defaults. The compiled conversion raises BadParams for params that do not fit.
        """
        unknown = [] if self.rest else sorted(set(defaults) - {p.name for p in self.parameters})
        if unknown:
            raise BadParams(f"{self.function} has no parameter {unknown[0]!r}, which the job's params name")
        decode = _decode_open(self, defaults) if self.rest else _decode_closed(self, defaults)
        return _arranged(self, decode)


def signature_of(function: Callable[..., Any]) -> Signature:
    """Read a callable's parameters. Refuses a parameter that JSON cannot fill, with a remedy."""
    name = getattr(function, "__qualname__", repr(function))
    found = inspect.signature(function)
    context, rest, parameters = None, False, []
    first = tuple(one.name for one in found.parameters.values() if one.kind == one.POSITIONAL_ONLY)
    for parameter in found.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise _refused(name, f"*{parameter.name} cannot be filled from named params", "Give it named parameters.")
        if parameter.kind is parameter.VAR_KEYWORD:
            rest = True
        elif parameter.name == "ctx" or getattr(annotation := _annotation(name, function, parameter), CONTEXT, False):
            context = parameter.name
        else:
            parameters.append(_parameter(parameter, annotation))
    signature = Signature(name, tuple(parameters), context, rest, first)
    _check_types(signature)
    return signature


def _parameter(parameter: inspect.Parameter, annotation: Any) -> Parameter:
    default = NODEFAULT if parameter.default is parameter.empty else parameter.default
    if default is None and annotation is not Any:
        annotation = annotation | None
    return Parameter(parameter.name, annotation, default, parameter.kind)


def _annotation(name: str, function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """Resolve the annotation of one parameter.

    Each is resolved separately, so that the annotation of `ctx`, which is not needed, may be unresolvable.
    """
    if parameter.annotation is parameter.empty:
        return Any
    holder = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        space = getattr(inspect.unwrap(function), "__globals__", {})
        return get_type_hints(holder, globalns=space, include_extras=True)[parameter.name]
    except Exception as error:  # an annotation in quotes may be any expression
        remedy = "Import its names at module level, not only for type checkers, and correct it if it is no type."
        raise _refused(name, f"the annotation of {parameter.name!r} cannot be resolved: {error}", remedy) from None


def _check_types(signature: Signature) -> None:
    for parameter in signature.parameters:
        try:
            msgspec.json.schema(parameter.type)
        except TypeError:
            shown = getattr(parameter.type, "__name__", parameter.type)
            remedy = "Annotate it with a JSON-like type, a dataclass, a Struct, a date or an enum."
            raise _refused(
                signature.function, f"{parameter.name!r} is a {shown}, which no JSON can fill", remedy
            ) from None


def _refused(function: str, reason: str, remedy: str) -> BadInput:
    return BadInput(f"{function} cannot be a job: {reason}.", remedy, field="function")


def _struct(signature: Signature, defaults: Mapping[str, Any]) -> type[Struct]:
    """Make a Struct whose fields are the parameters, in order."""
    fields = [(p.name, p.type, _field(p, defaults)) for p in signature.parameters]
    return msgspec.defstruct("Params", fields, kw_only=True, forbid_unknown_fields=not signature.rest)


def _field(parameter: Parameter, defaults: Mapping[str, Any]) -> Any:
    if parameter.name in defaults:
        try:
            value = msgspec.convert(defaults[parameter.name], parameter.type, str_keys=True)
        except msgspec.ValidationError as error:
            raise BadParams(f"the job's params: {parameter.name}: {error}") from None
        return msgspec.field(default=value) if type(value) in _PLAIN else _fresh(value)
    default = parameter.default
    if default is NODEFAULT:
        return msgspec.field()
    if type(default) in _PLAIN:
        return msgspec.field(default=default)
    return msgspec.field(default_factory=lambda: default)  # all calls share the object, as in Python


def _fresh(value: Any) -> Any:
    return msgspec.field(default_factory=lambda: deepcopy(value))


def _decode_closed(signature: Signature, defaults: Mapping[str, Any]) -> Callable[[bytes | Raw], Any]:
    decode = msgspec.json.Decoder(_struct(signature, defaults)).decode

    def closed(item: bytes | Raw) -> Any:
        try:
            return decode(item)
        except NOT_FITTING as error:
            if bytes(item).strip() == b"null":
                return closed(b"{}")
            raise _bad_params(error) from None

    return closed


def _decode_open(signature: Signature, defaults: Mapping[str, Any]) -> Callable[[bytes | Raw], Any]:
    """Return a decoder for a function with **kwargs.

    The decoder returns the params for named parameters as a Struct, and a dict of all other params.
    """
    names = {p.name for p in signature.parameters}
    known = {name: value for name, value in defaults.items() if name in names}
    struct = _struct(signature, known)
    decoder = msgspec.json.Decoder(dict[str, Any] | None)
    others = {name: value for name, value in defaults.items() if name not in names}

    def opened(item: bytes | Raw) -> Any:
        try:
            given = decoder.decode(item) or {}
            named = msgspec.convert({n: v for n, v in given.items() if n in names}, struct, str_keys=True)
        except NOT_FITTING as error:
            raise _bad_params(error) from None
        return named, {**others, **{n: v for n, v in given.items() if n not in names}}

    return opened


def _bad_params(error: Exception) -> BadParams:
    return BadParams(str(error) if isinstance(error, msgspec.ValidationError) else f"the params are not JSON: {error}")


def _arranged(signature: Signature, decode: Callable[[bytes | Raw], Any]) -> Bind:
    """Choose how decoded params become arguments: all by position if possible, which is fastest."""
    plain = signature.context is None and not signature.rest
    if plain and all(p.kind in _POSITIONAL for p in signature.parameters):
        nothing: dict[str, Any] = {}
        return lambda item, ctx: (astuple(decode(item)), nothing)
    return _arranged_by_name(signature, decode)


def _arranged_by_name(signature: Signature, decode: Callable[[bytes | Raw], Any]) -> Bind:
    context, rest, first = signature.context, signature.rest, signature.first

    def bind(item: bytes | Raw, ctx: Any) -> Call:
        decoded = decode(item)
        named, others = decoded if rest else (decoded, {})
        keywords = {**others, **asdict(named)}
        if context is not None:
            keywords[context] = ctx
        return tuple(keywords.pop(name) for name in first), keywords

    return bind
