"""Templates of jobs, and the jobs made from them.

Every change of a template is made under the advisory lock `locks.of_dependencies` of its namespace.
"""

from uuid import UUID

import msgspec

from horae.env import Instant
from horae.features.templates.model.values import Body, JobTemplate
from horae.store.definitions.jobs import FROM, JOB, StoredJob, stored
from horae.store.script import Fetch, Row, Script, Statement
from horae.store.tenancy.holdings import Holdings, rows

COLUMNS = "t.id, t.namespace, t.name, t.version, v.body, t.created_at, t.updated_at"
JOINED = "FROM templates t JOIN template_versions v ON v.template = t.id AND v.version = t.version"
NAMED = Statement(
    "template", f"SELECT {COLUMNS} {JOINED} WHERE t.namespace = $1 AND t.name = $2 AND t.deleted_at IS NULL"
)
PAGE = Statement(
    "template_page",
    f"SELECT {COLUMNS} {JOINED} WHERE t.namespace = $1 AND t.name > $2 AND t.deleted_at IS NULL"
    " ORDER BY t.name LIMIT $3",
)
VERSIONS = Statement(
    "template_versions",
    "SELECT t.id, t.namespace, t.name, v.version, v.body, t.created_at, v.created_at FROM templates t"
    " JOIN template_versions v ON v.template = t.id WHERE t.id = $1 ORDER BY v.version DESC",
)
ADD = Statement(
    "add_template",
    "INSERT INTO templates (id, namespace, name, version, created_at, updated_at) VALUES ($1, $2, $3, 1, $4, $4)"
    " ON CONFLICT DO NOTHING RETURNING id",
)
CHANGE = Statement("change_template", "UPDATE templates SET version = $2, updated_at = $3 WHERE id = $1")
DELETE = Statement("delete_template", "UPDATE templates SET deleted_at = $2, updated_at = $2 WHERE id = $1")
ADD_VERSION = Statement(
    "add_template_version",
    "INSERT INTO template_versions (template, version, body, created_at) VALUES ($1, $2, $3, $4)",
)
USERS = Statement(
    "jobs_of_template",
    f"SELECT {JOB} {FROM} JOIN template_jobs u ON u.job = j.id WHERE u.template = $1 AND j.state <> 'deleted'"
    " ORDER BY j.id",
)

_read_body = msgspec.json.Decoder(Body).decode
HOLDINGS = Holdings(
    ends=(
        Statement(
            "end_templates_of_namespace",
            "UPDATE templates SET deleted_at = $2 WHERE namespace = $1 AND deleted_at IS NULL",
        ),
    ),
    rows=(
        rows("template_versions", "template, version", "template IN (SELECT id FROM templates WHERE namespace = $1)"),
    ),
)


def _template(row: Row) -> JobTemplate:
    return JobTemplate(
        id=row[0], namespace=row[1], name=row[2], version=row[3], body=_read_body(row[4]), created_at=row[5],
        updated_at=row[6],
    )  # fmt: skip


def named(namespace: int, name: str) -> Script[JobTemplate | None]:
    """Return the template with this name, if it is not deleted."""
    rows = yield Fetch(NAMED, (namespace, name))
    return _template(rows[0]) if rows else None


def page(namespace: int, after: str, limit: int) -> Script[list[JobTemplate]]:
    """Return templates in the order of their names."""
    return [_template(row) for row in (yield Fetch(PAGE, (namespace, after, limit)))]


def versions(template_id: UUID) -> Script[list[JobTemplate]]:
    """Return all versions of a template, newest first."""
    return [_template(row) for row in (yield Fetch(VERSIONS, (template_id,)))]


def add(template_id: UUID, namespace: int, name: str, body: Body, now: Instant) -> Script[bool]:
    """Add a template with its first version; return False if its name is taken."""
    if not (yield Fetch(ADD, (template_id, namespace, name, now))):
        return False
    yield Fetch(ADD_VERSION, (template_id, 1, _text(body), now))
    return True


def change(template_id: UUID, version: int, body: Body, now: Instant) -> Script[None]:
    """Write the next version of a template."""
    yield Fetch(ADD_VERSION, (template_id, version, _text(body), now))
    yield Fetch(CHANGE, (template_id, version, now))


def delete(template_id: UUID, now: Instant) -> Script[None]:
    """Delete a template and free its name; its versions stay."""
    yield Fetch(DELETE, (template_id, now))


def _text(body: Body) -> str:
    return msgspec.json.encode(body).decode()


def users(template_id: UUID) -> Script[list[StoredJob]]:
    """Return the jobs made from a template, by id."""
    return [stored(row) for row in (yield Fetch(USERS, (template_id,)))]
