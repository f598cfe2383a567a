"""The first administrator's key: created at the first start and stored in the data folder for its owner only."""

import os
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
    key = await keys.ensure_admin_key(None, found)
    if key is not None and key != found:
        write_private(settings.key_file, key)
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


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, complete or not at all."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    try:
        with os.fdopen(private.create_file(new), "w") as open_file:
            open_file.write(text + "\n")
            open_file.flush()
            os.fsync(open_file.fileno())
        new.replace(path)
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}.", "Choose another folder with --data.") from None


def make_folder(data: Path) -> None:
    """Create the data folder, accessible to its owner only, unless it exists."""
    try:
        private.make_folder(data)
    except OSError as error:
        raise BadInput(f"{data} cannot be created: {error.strerror}.", "Choose another folder with --data.") from None
