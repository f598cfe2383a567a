"""What a job is looked for by, as one text: a list of very many is searched without a look at their definitions."""

from collections.abc import Mapping

TAG = "\t"  # stands around each tag; no name, description or tag has one left


def words_of(name: str, description: str, tags: Mapping[str, str]) -> str:
    """A job's words: its name, description and tags in small letters, then its tags as they are."""
    spelled = [f"{name}={value}" for name, value in tags.items()]
    said = "\n".join((name, description, *spelled)).lower().replace(TAG, " ")
    return said + "".join(f"{TAG}{one}{TAG}" for one in spelled)


def sought(text: str) -> str:
    """What a search looks for among words."""
    return text.lower().replace(TAG, " ")


def sought_tag(name: str, value: str | None) -> str:
    """What stands there for a tag, whatever its value, or with this one."""
    return f"{TAG}{name}={'' if value is None else value + TAG}"
