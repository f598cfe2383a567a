"""Finds lines of the user's code, in the call stack or in a traceback."""

import importlib
import sys
from pathlib import Path
from types import TracebackType

Place = tuple[str, int]  # a file and a line
_OTHERS = (str(Path(__file__).parents[1]) + "/", str(Path(importlib.__file__).parent) + "/", "<frozen importlib")


def is_users(file: str) -> bool:
    """Tell whether a file is neither Horae's nor part of the import machinery."""
    return not file.startswith(_OTHERS)


def caller() -> Place:
    """Return the line of the user's code that is running now."""
    frame = sys._getframe(1)
    while not is_users(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def raised_at(traceback: TracebackType | None) -> Place | None:
    """Return the last line of the user's code in a traceback."""
    found = None
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        found = (file, traceback.tb_lineno) if is_users(file) else found
        traceback = traceback.tb_next
    return found
