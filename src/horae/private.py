"""Creation of folders and files that only their owner can read, whatever the umask."""

import os
from pathlib import Path


def make_folder(path: Path) -> None:
    """Create a folder, and missing parents, with mode 0700; an existing folder keeps its mode."""
    try:
        path.mkdir(mode=0o700)
    except FileNotFoundError:
        make_folder(path.parent)
        make_folder(path)
    except FileExistsError:
        if not path.is_dir():
            raise


def open_file(path: Path | str, flags: int) -> int:
    """Open a file with these flags of `os.open` and return its descriptor; a new file has mode 0600."""
    return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, 0o600)


def create_file(path: Path) -> int:
    """Create a file with mode 0600 and return its descriptor, open for writing. Raises FileExistsError."""
    return open_file(path, os.O_WRONLY | os.O_EXCL)
