"""The search text of a job, which is stored so that many jobs can be searched without reading their definitions."""

from collections.abc import Mapping

TAG = "\t"  # encloses each tag; tabs in other texts are replaced


def searchable_text(name: str, description: str, tags: Mapping[str, str]) -> str:
    """Return a job's search text: its name, description and tags in lower case, then its tags unchanged."""
    spelled = [f"{name}={value}" for name, value in tags.items()]
    said = "\n".join((name, description, *spelled)).lower().replace(TAG, " ")
    return said + "".join(f"{TAG}{one}{TAG}" for one in spelled)


def search_pattern(text: str) -> str:
    """Return the text that must occur in a job's search text if a user searches for `text`."""
    return text.lower().replace(TAG, " ")


def tag_pattern(name: str, value: str | None) -> str:
    """Return the text that occurs in the search texts of jobs with a tag, with any value or with this value."""
    return f"{TAG}{name}={'' if value is None else value + TAG}"
