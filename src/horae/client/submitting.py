"""Submission of a job by its function: `await job.submit(...)`, or `job.sync.submit(...)` without an event loop."""

import warnings
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NoReturn, ParamSpec, TypeVar, Unpack, overload

from msgspec import NODEFAULT

from horae.client.options import BulkOptions
from horae.client.places import caller
from horae.client.submission_options import OF_CALLS
from horae.client.views import ExecutionInfo, SubmittedItem
from horae.model.definitions.function_signature import Signature
from horae.model.executions.job_exceptions import Span

if TYPE_CHECKING:
    from horae.client.client import Client
    from horae.worker.code.context import Context

Q = ParamSpec("Q")
T = TypeVar("T")
F_co = TypeVar("F_co", covariant=True)
A_co = TypeVar("A_co", covariant=True)
A = TypeVar("A")

OTHER_NAMES = {  # names of submission methods in other libraries
    **dict.fromkeys(("apply_async", "si", "s"), "countdown= is delay=, eta= is at=."),
    **dict.fromkeys(("delay", "send", "send_with_options", "enqueue", "kiq", "defer", "remote", "apply"), ""),
}


class NotSubmitted(RuntimeWarning):
    """A call of `submit` that was never awaited: nothing was submitted."""


class PendingSubmission(Coroutine[Any, Any, T]):
    """A submission that starts when it is awaited. If it never is, a warning names the line that created it."""

    def __init__(self, call: str, work: Coroutine[Any, Any, T]) -> None:
        self._call, self._work, self._place, self._begun = call, work, caller(), False
        self.__name__ = self.__qualname__ = call  # asyncio's name for a task of it

    def __await__(self) -> Generator[Any, Any, T]:
        self._begun = True
        return self._work.__await__()

    def send(self, value: Any) -> Any:
        self._begun = True
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        self._begun = True
        return self._work.throw(*error)

    def close(self) -> None:
        self._begun = True
        self._work.close()

    def __repr__(self) -> str:
        return f"<{self._call}(...), begun>" if self._begun else f"<{self._remedy()}>"

    if not TYPE_CHECKING:  # otherwise a type checker would accept every name

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith(("_", "cr_")):
                raise AttributeError(name)
            raise AttributeError(f"There is no {name!r} yet: {self._remedy()}")

    def __del__(self) -> None:
        if self._begun:
            return
        with suppress(AttributeError, ImportError):  # modules disappear when Python exits
            self._work.close()
            warnings.warn_explicit(self._remedy(), NotSubmitted, *self._place, registry={})  # each time, not once

    def _remedy(self) -> str:
        job, _, method = self._call.rpartition(".")
        return (
            f"{self._call}(...) was not awaited, so nothing was submitted. Write `await {self._call}(...)`,"
            f" or `{job}.sync.{method}(...)` in code without async"
        )


class SubmitMethod(Generic[F_co, A_co]):
    """The method `submit`. Without options, type checkers check the params; with an option, they accept any params."""

    @overload
    def submit(
        self: "SubmitMethod[Callable[Concatenate[Context, Q], Any], A]", *args: Q.args, **named: Q.kwargs
    ) -> A: ...

    @overload
    def submit(self: "SubmitMethod[Callable[Q, Any], A]", *args: Q.args, **named: Q.kwargs) -> A: ...

    @overload
    def submit(self, *args: Any, delay: Span, **named: Any) -> A_co: ...

    @overload
    def submit(self, *args: Any, at: datetime | str, **named: Any) -> A_co: ...

    @overload
    def submit(self, *args: Any, key: str, **named: Any) -> A_co: ...

    @overload
    def submit(self, *args: Any, priority: int, **named: Any) -> A_co: ...

    @overload
    def submit(self, *args: Any, deadline: datetime | str, **named: Any) -> A_co: ...

    @overload
    def submit(self, *args: Any, within: Span, **named: Any) -> A_co: ...

    @overload
    def submit(self, *args: Any, tags: dict[str, str], **named: Any) -> A_co: ...

    def submit(self, *args: Any, **named: Any) -> Any:
        """Submit one execution with these params. Keywords such as `delay`, `key` and `tags` are options.

        If the function has a parameter with the name of an option, the keyword sets the parameter. Use
        `app.client.submit` to set the option.
        """
        return self._submit(args, named)

    def _submit(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        raise NotImplementedError


class Submittable(SubmitMethod[F_co, PendingSubmission[ExecutionInfo]]):
    """A job or a workflow, with its name, its function's signature and its app."""

    app: Any
    name: str
    signature: Signature
    _document: dict[str, Any]

    @property
    def sync(self) -> "SyncSubmit[F_co]":
        """The submit methods for code without an event loop: each call blocks until the submission is on disk."""
        return SyncSubmit(self)

    def submit_many(
        self, items: Iterable[Mapping[str, Any]], *, atomic: bool = False, **options: Unpack[BulkOptions]
    ) -> PendingSubmission[list[SubmittedItem]]:
        """Submit one execution per item of params."""
        return PendingSubmission(
            f"{self._source_name}.submit_many", self.app.client.submit_many(self.name, items, atomic=atomic, **options)
        )

    if not TYPE_CHECKING:  # otherwise a type checker would accept every name

        def __getattr__(self, name: str) -> NoReturn:
            if (hint := OTHER_NAMES.get(name)) is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise AttributeError(
                f"A job of Horae has no .{name}(...). Write `await {self._source_name}.submit(...)`,"
                f" or `{self._source_name}.sync.submit(...)` in code without async. {hint}".rstrip()
            )

    def __reduce__(self) -> str:
        """Pickle the job by its name, as functions are, so that another process imports it from its module."""
        return str(self.__dict__["__qualname__"])

    @property
    def _source_name(self) -> str:
        """The name of the job in the user's code."""
        return str(self.__dict__.get("__name__", self.name))

    def _submit(self, args: tuple[Any, ...], named: dict[str, Any]) -> PendingSubmission[ExecutionInfo]:
        params, options = self._call(args, named)
        return PendingSubmission(f"{self._source_name}.submit", self.app.client.submit(self.name, params, **options))

    def _call(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        return split_arguments(self.name, self.signature, self._document, args, named)


class SyncSubmit(SubmitMethod[F_co, ExecutionInfo]):
    """`job.sync`: the submit methods, which block. They work in any thread, after a fork, and beside a running loop."""

    def __init__(self, job: Submittable[F_co]) -> None:
        self._job = job

    def submit_many(
        self, items: Iterable[Mapping[str, Any]], *, atomic: bool = False, **options: Unpack[BulkOptions]
    ) -> list[SubmittedItem]:
        """Submit one execution per item of params."""
        done: list[SubmittedItem] = self._client.sync.submit_many(self._job.name, items, atomic=atomic, **options)
        return done

    def _submit(self, args: tuple[Any, ...], named: dict[str, Any]) -> ExecutionInfo:
        params, options = self._job._call(args, named)
        execution: ExecutionInfo = self._client.sync.submit(self._job.name, params, **options)
        return execution

    if not TYPE_CHECKING:  # otherwise a type checker would accept every name

        def __getattr__(self, name: str) -> NoReturn:
            if name in OTHER_NAMES and "_job" in self.__dict__:
                call = f"{self._job._source_name}.sync"
                raise AttributeError(
                    f"{call} has no .{name}(...). Write `{call}.submit(...)`. {OTHER_NAMES[name]}".rstrip()
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def _client(self) -> "Client":
        client: Client = self._job.app.client
        return client


def split_arguments(
    job: str, signature: Signature, document: Mapping[str, Any], args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate params from options; raise a TypeError for wrong or missing params, as in a plain call."""
    names, places = [parameter.name for parameter in signature.parameters], signature.by_position
    if "batch" in document and not args:  # a submission is an item of the function's list
        options = {name: named.pop(name) for name in OF_CALLS if name in named}
        return named, options
    if len(args) > len(places):
        raise TypeError(f"{job} takes {len(places)} params by position, but {len(args)} were given")
    options = {name: named.pop(name) for name in OF_CALLS if name in named and name not in names}
    twice = [name for name in places[: len(args)] if name in named]
    unknown = [] if signature.rest else [name for name in named if name not in names]
    if twice or unknown:
        raise TypeError(f"{job} does not accept {(twice or unknown)[0]!r} here; its params are {', '.join(names)}")
    params = {**dict(zip(places, args, strict=False)), **named}
    known = {**document.get("params", {}), **params}
    missing = [p.name for p in signature.parameters if p.default is NODEFAULT and p.name not in known]
    if missing:
        raise TypeError(f"{job} needs {missing[0]!r}")
    return params, options
