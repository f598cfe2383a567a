"""Translate SQLite's errors to Horae's."""

from typing import NoReturn

from horae.errors import Busy, StoreUnavailable
from horae.store.sqlite.library import sqlite3

_UNAVAILABLE = {
    5: "is locked",
    8: "is read-only",
    10: "cannot be read or written",
    11: "is damaged",
    13: "has a full disk",
    14: "cannot be opened",
    26: "is not a SQLite database",
}
_IO_ERROR, _INTERRUPTED, _FULL, _READ_ONLY = 10, 9, 13, 8
_ROOM = "Make room on the disk; Horae then continues by itself. Nothing was changed."
_WRITABLE = "Give Horae's account the right to write the file and its folder. Nothing was changed."
_DAMAGED = {11, 26}


def reraise(error: BaseException, committing: bool = False) -> NoReturn:
    """Raise Horae's error for one of SQLite's; `committing` says that the error occurred in a commit."""
    translated_error = to_horae_error(error, committing)
    if translated_error is error:
        raise error
    raise translated_error from error


def to_horae_error(error: BaseException, committing: bool = False) -> BaseException:
    """Return Horae's error for one of SQLite's; other errors are returned unchanged.

    After an I/O error in a commit the outcome is unknown.
    """
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF if isinstance(error, sqlite3.Error) else 0
    if code == _INTERRUPTED:
        return Busy("The read took too long and was stopped.", "Request fewer rows at once, or narrow the filter.")
    if code not in _UNAVAILABLE:
        return error
    detail = f"The store's file {_UNAVAILABLE[code]} ({error})."
    if committing and code == _IO_ERROR:
        return StoreUnavailable(
            detail, "Repeat the request with the same idempotency key: it may have been executed.", unknown=True
        )
    if code in _DAMAGED:
        return StoreUnavailable(detail, "Replace it by a backup with `horae db restore`, or choose another file.")
    return StoreUnavailable(detail, {_FULL: _ROOM, _READ_ONLY: _WRITABLE}.get(code, ""))
