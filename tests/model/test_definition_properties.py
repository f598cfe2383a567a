"""Every accepted definition is rendered in a form that reads back as the same."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from horae.env import SECOND
from horae.errors import BadInput
from horae.model.definitions.job import JOB
from horae.model.definitions.reading.read import parse_definition
from horae.model.definitions.reading.write import render_definition

NOW = 1_800_000_000 * SECOND

words = st.text(
    st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"], exclude_characters="$"), max_size=12
)
names = st.from_regex(r"[A-Za-z][A-Za-z0-9._-]{0,20}", fullmatch=True)
labels = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,20}", fullmatch=True)
plain = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(-1e9, 1e9) | words
trees = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3))
objects = st.dictionaries(words, trees, max_size=4)
spans = st.integers(0, 10**12).map(lambda micros: micros / 1_000_000) | st.sampled_from(
    ["5m", "1h30m", "PT5M", "250ms"]
)
short = st.sampled_from(["0s", "1s", "1.5s", "2m", "1h"])
limits = st.fixed_dictionaries(
    {},
    optional={
        "memory": st.integers(1 << 20, 1 << 40),
        "cpu": st.sampled_from(["1s", "2m", 7]),
        "files": st.integers(8, 99),
        "processes": st.integers(1, 99),
        "output": st.sampled_from(["1MiB", 5]),
        "fileSize": st.integers(1, 1 << 40),
    },
)
commands = st.one_of(
    st.builds(lambda n, bounds: {"argv": [n], "limits": bounds, "user": n[:20]}, names.filter(str.isalpha), limits),
    st.lists(words.filter(bool), min_size=1, max_size=4),
    st.builds(lambda line, cwd: {"shell": line, "cwd": cwd}, words.filter(bool), st.none() | st.just("/tmp")),
    st.sampled_from(["echo a", "echo 'a b'"]),
)
tasks = st.one_of(
    st.builds(lambda c: {"command": c}, commands),
    st.builds(lambda n, bounds: {"python": {"function": n, "limits": bounds}}, names, limits),
    st.builds(lambda f: {"python": f}, names | st.builds(lambda n: {"function": n, "isolation": "thread"}, names)),
    st.builds(
        lambda b, n: {"http": {"url": "https://x", "body": b, "headers": {"A": "b"}, "redirects": n}},
        trees,
        st.integers(0, 3),
    ),
)
retries = st.one_of(
    st.just({}),
    st.builds(lambda n, d: {"retries": n, "retry": {"delay": d}}, st.integers(0, 50), short),
    st.builds(
        lambda n, f, j: {"retries": n, "retry": {"delay": "1s", "factor": f, "max": "1h", "jitter": j}},
        *(st.integers(0, 50), st.floats(1, 10), st.floats(0, 1)),
    ),
    st.builds(
        lambda d, p, j: {"retry": {"delays": d, "giveUpOn": p, "jitter": j}},
        *(st.lists(short, min_size=1, max_size=4), st.lists(names, max_size=2), st.floats(0, 1)),
    ),
    st.builds(
        lambda p, b: {"retries": 2, "retry": {"retryOn": p, "giveUpOn": ["http:4xx", "exit:64-78"], "budgets": b}},
        st.lists(names, max_size=3),
        st.dictionaries(st.sampled_from(["error", "timeout", "lost", "platform"]), st.integers(0, 100)),
    ),
)
schedules = st.sampled_from(
    [
        *(None, "0 9 * * MON-FRI", {"every": "5m"}, {"at": "2027-03-01T08:00:00Z"}),
        {"cron": "H * * * *", "timezone": "Europe/Paris", "overlap": "allow", "misfire": {"all": 3}},
    ]
)


@st.composite
def bodies(draw: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"name": draw(names), **draw(tasks), **draw(retries), "schedule": draw(schedules)}
    optional = {
        "description": words, "params": objects, "timeout": spans.filter(lambda s: isinstance(s, str) or s > 0.01),
        "grace": short, "priority": st.integers(0, 9), "queue": names, "needs": st.lists(labels, max_size=3),
        "dependencies": st.lists(names, max_size=3), "tags": st.dictionaries(labels, words, max_size=3),
        "env": st.dictionaries(st.from_regex(r"[A-G_][A-Z0-9_]{0,10}", fullmatch=True), words, max_size=3),
        "interruptible": st.just(True), "preempts": st.booleans(),
        "keyFor": st.sampled_from(["1h", 90, "30d"]), "schema": st.none() | st.just({"type": "object"}),
    }  # fmt: skip
    for field, values in optional.items():
        if draw(st.booleans()):
            body[field] = draw(values)
    return body


def accepted(body: dict[str, Any]) -> Any:
    try:
        return parse_definition(body, namespace_name="default", created_at=NOW)
    except BadInput as error:
        if "itself" in error.detail or "looks like an id" in error.detail:
            return None
        raise


@given(bodies())
def test_a_rendered_definition_reads_back(body):
    first = accepted(body)
    if first is None:
        return
    stored = msgspec.structs.replace(first.spec, dependencies=first.dependencies)
    written = msgspec.json.decode(msgspec.json.encode(render_definition(stored)))
    again = accepted(written)
    assert again == first
    assert msgspec.json.decode(msgspec.json.encode(first.spec), type=type(first.spec)) == first.spec


def refused(body: Any) -> BadInput | None:
    try:
        parse_definition(body, namespace_name="default", created_at=NOW)
    except BadInput as error:
        return error
    return None


@given(st.dictionaries(st.sampled_from(JOB.names) | words, trees, max_size=6) | trees)
def test_any_other_input_is_refused_with_a_remedy(body):
    error = refused(body)
    assert error is None or (error.detail and error.remedy and isinstance(error.fields["field"], str))
