"""JSON merge patches (RFC 7396): null removes a member, objects are merged, everything else is replaced."""

from typing import Any


def merge(current: Any, patch: Any) -> Any:
    """Return the value with the patch applied."""
    if not isinstance(patch, dict):
        return patch
    result = dict(current) if isinstance(current, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge(result.get(name), value)
    return result
