"""The first administrator's key: created at the first start and stored in the data folder for its owner only."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from horae import private
from horae.config.settings import Settings
from horae.engine.tenancy.keys import ApiKeys
from horae.errors import BadInput


async def ensure_key(keys: ApiKeys, settings: Settings) -> str:
    """Make sure that an administrator's key exists; return a text that says where it is stored."""
    if settings.admin_key:
        await keys.ensure_admin_key(str(settings.admin_key))
        return "the one that HORAE_ADMIN_KEY sets"
    found = read_key(settings.key_file)
    if not await keys.has_admin():
        with private_file(settings.key_file) as keep:
            key = await keys.ensure_admin_key(None, found)
            if key is not None and key != found:
                keep(key)
    if settings.key_file.exists():
        return str(settings.key_file)
    return f"created at an earlier start and not in {settings.data}; HORAE_ADMIN_KEY sets another"


def read_key(path: Path) -> str:
    """Return the key in a file; empty if there is no file.

    The key may belong to another store that used the same data folder.
    """
    try:
        return path.read_text().strip() if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {error}.", "Move the file away, or choose another --data.") from None


@contextmanager
def private_file(path: Path) -> Iterator[Callable[[str], None]]:
    """Create a file that only its owner can read. The yielded function stores a text in it, complete or not at all.

    The file is created before its text exists, so that no text is lost because the file cannot be created.
    """
    new = path.with_name(path.name + ".new")
    with _reported(path):
        new.unlink(missing_ok=True)
        descriptor = private.create_file(new)

    def keep(text: str) -> None:
        with _reported(path):
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
            new.replace(path)

    try:
        with os.fdopen(descriptor, "w") as file:
            yield keep
    finally:
        new.unlink(missing_ok=True)


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}.", "Choose another folder with --data.") from None


def make_folder(data: Path) -> None:
    """Create the data folder, accessible to its owner only, unless it exists."""
    try:
        private.make_folder(data)
    except OSError as error:
        raise BadInput(f"{data} cannot be created: {error.strerror}.", "Choose another folder with --data.") from None
