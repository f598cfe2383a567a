"""Secrets in a worker: received with grants or looked up here, filled into jobs, and masked in all data that is sent.

A granted slice has its secrets as `HeldSecrets`, only as long as the slice is held. They are never written to disk.
"""

import os
import re
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from horae.errors import BadInput
from horae.model.base.redaction import LEAST, MASK, Redactor
from horae.model.fleet.protocol import Answer, ReportedFailure
from horae.model.tenancy.secret_refs import MOST_VALUE
from horae.worker.code.execution_requests import (
    ExecutionRequest,
    RememberStep,
    SubmitExecutions,
    UploadArtifact,
    WaitForSignal,
)

_LEFT_OUT = re.compile(r"(\n\.\.\. \d+ characters left out \.\.\.\n)")  # as `failure.shorten` writes it
_STORED = (
    "Submissions and waits are stored. Remove the value here, and declare the secret in the job that needs it, with"
    " `secrets` or in its definition."
)


class SecretUnavailable(Exception):
    """A secret is missing; the message has the reason. An execution that needs the secret does not start."""

    failure = "SecretUnavailable"


class ParamsUnavailable(SecretUnavailable):
    """The server could not decrypt the params; the message has the reason."""

    failure = "ParamsUnavailable"


class ReceivedSecrets(Struct, frozen=True):
    """Secrets that a server sent with a grant, by name."""

    values: Mapping[str, str]
    problems: Mapping[str, str]  # the reasons why values are missing


def received_secrets(answer: Answer, references: tuple[str, ...]) -> ReceivedSecrets:
    """Return the secrets in an answer that one job refers to."""
    return ReceivedSecrets(
        {name: answer.secrets[name] for name in references if name in answer.secrets},
        {name: answer.secret_problems[name] for name in references if name in answer.secret_problems},
    )


class HeldSecrets:
    """The secrets that executions of one slice use."""

    __slots__ = ("plan", "redactor", "values")

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values
        self.redactor = Redactor(values.values())
        self.plan: Any = None  # the job's plan with these secrets filled in

    def mask_text(self, text: str) -> str:
        """Mask secret values in a text that may have been shortened, including values that are partly cut off."""
        parts = _LEFT_OUT.split(text)
        if len(parts) == 1:
            return self.redactor.text(text)
        last = len(parts) - 1
        return "".join(
            part if i % 2 else self.redactor.cut(part, at_start=i > 0, at_end=i < last) for i, part in enumerate(parts)
        )

    def mask_start(self, data: bytes) -> bytes:
        """Mask secret values in the start of a longer byte string, including a value that is cut off at its end."""
        stream = self.redactor.stream()
        shown = stream.feed(data)
        return shown if not stream.held else shown + MASK.encode()

    def mask_outcome(self, outcome: Any) -> Any:
        """Mask secret values in a result or an outcome; return the same object if there is nothing to mask."""
        if isinstance(outcome, bytes):
            return self.redactor.json(outcome)
        result = self.redactor.json(outcome.result)
        error = None if outcome.error is None else self._failure(outcome.error)
        if result is outcome.result and error is outcome.error:
            return outcome
        return structs.replace(outcome, result=result, error=error)

    def _failure(self, error: ReportedFailure) -> ReportedFailure:
        covered = structs.replace(
            error,
            type=self.redactor.text(error.type),
            message=self.mask_text(error.message),
            traceback=self.mask_text(error.traceback),
            names=tuple(map(self.redactor.text, error.names)),
        )
        return error if covered == error else covered

    def mask_request(self, ask: ExecutionRequest) -> tuple[ExecutionRequest, str]:
        """Mask secret values in a request. Return the new request, and a description of its masked part, or "".

        Raises BadInput if masking would change the meaning of the request.
        """
        if isinstance(ask, RememberStep):
            before = bytes(ask.result)
            result = self.redactor.json(before)
            return (
                (ask, "")
                if result is before
                else (RememberStep(ask.name, msgspec.Raw(result)), f"the stored result of {ask.name!r}")
            )
        if isinstance(ask, UploadArtifact):
            name = self.redactor.text(ask.name)
            return structs.replace(ask, name=name), "" if name == ask.name else f"the name of the artifact {name!r}"
        if isinstance(ask, SubmitExecutions | WaitForSignal):
            message = msgspec.json.encode(ask)
            if self.redactor.json(message) is not message:
                raise BadInput("The request contains the value of a secret.", _STORED)
        return ask, ""


def reuse_secrets(values: Mapping[str, str], last: HeldSecrets | None) -> HeldSecrets:
    """Return an object with these values: `last`, that of the former slice, if its values are equal.

    This saves work, because the redactor and the job's plan with these secrets were made for that object.
    """
    return last if last is not None and last.values == values else HeldSecrets(values)


class SecretProviders:
    """The sources of secrets on this machine that the worker's owner allows.

    These are the environment variables with certain names, and the files of one folder.
    """

    def __init__(self, names: tuple[str, ...] = (), folder: str = "") -> None:
        self._names = frozenset(names)
        self._folder = folder

    def hold(self, references: tuple[str, ...], given: ReceivedSecrets) -> dict[str, str]:
        """Return every secret that a job refers to. Raises SecretUnavailable when one is missing."""
        return {name: self._one(name, given) for name in references}

    def _one(self, reference: str, given: ReceivedSecrets) -> str:
        provider, _, name = reference.rpartition("/")
        if provider == "env":
            return _checked(reference, self._variable(name))
        if provider == "file":
            return _checked(reference, self._file(name))
        if name in given.values:
            return given.values[name]
        why = given.problems.get(name, "The server sent no value; upgrade the server.")
        raise SecretUnavailable(f'the server could not provide the secret "{name}": {why}')

    def _variable(self, name: str) -> str:
        if name not in self._names:
            message = f"this worker does not provide secret://env/{name}; allow it with HORAE_SECRET_ENV={name}"
            raise SecretUnavailable(message)
        value = os.environ.get(name)
        if value is None:
            raise SecretUnavailable(
                f"this worker has no variable {name} in its environment; set it where it is started"
            )
        return value

    def _file(self, name: str) -> str:
        if not self._folder:
            message = f"this worker provides no secret://file/{name}; set the folder of secrets by HORAE_SECRET_FILES"
            raise SecretUnavailable(message)
        try:
            with (Path(self._folder) / name).open("rb") as file:
                return file.read(4 * MOST_VALUE + 1).decode().removesuffix("\n")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise SecretUnavailable(f"secret://file/{name} cannot be read from {self._folder}: {why}") from None


def _checked(reference: str, value: str) -> str:
    if len(value.strip()) < LEAST:
        message = f"secret://{reference} has fewer than {LEAST} characters, too few to be masked in logs"
        raise SecretUnavailable(f"{message}; use a longer one")
    if len(value) > MOST_VALUE or "\0" in value:
        raise SecretUnavailable(f"secret://{reference} is longer than {MOST_VALUE} characters, or is not text")
    return value


def failed_answer(error: Exception) -> "Future[Any]":
    """Return a future with an error, in place of the answer to a request that is not sent."""
    answer: Future[Any] = Future()
    answer.set_exception(error)
    return answer
