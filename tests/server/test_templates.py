"""Templates over HTTP: answers and refusals."""

from tests.server.conftest import Api

BODY = {"parameters": {"region": {"type": "string"}}, "job": {"command": ["backup", "${with.region}"]}}


async def test_a_template_is_created_changed_and_deleted(api: Api):
    created = await api.put("/api/v1/templates/backup", json=BODY)
    assert (created.status_code, created.headers["etag"].partition(".")[0]) == (201, 'W/"1')
    made = await api.post("/api/v1/jobs", json={"name": "eu", "template": "backup", "with": {"region": "eu"}})
    assert (made.status_code, made.json()["command"], made.json()["with"]) == (201, ["backup", "eu"], {"region": "eu"})

    other = {**BODY, "job": {"command": ["save", "${with.region}"]}}
    dry = (await api.put("/api/v1/templates/backup?dryRun=true", json=other)).json()
    assert (dry["version"], dry["dryRun"], dry["affected"][0]["job"]) == (2, True, "eu")
    assert (await api.get("/api/v1/templates/backup")).json()["version"] == 1
    done = await api.put("/api/v1/templates/backup", json=other, headers={"if-match": '"1"'})
    assert (done.status_code, done.json()["affected"][0]["changes"][0]["path"]) == (200, "command")
    assert (await api.put("/api/v1/templates/backup", json=BODY, headers={"if-match": '"1"'})).status_code == 412
    assert [v["version"] for v in (await api.get("/api/v1/templates/backup/versions")).json()["items"]] == [2, 1]

    used = await api.delete("/api/v1/templates/backup")
    assert (used.status_code, used.json()["jobs"]) == (409, ["eu"])
    await api.delete("/api/v1/jobs/eu")
    assert (await api.delete("/api/v1/templates/backup")).status_code == 204
    assert (await api.get("/api/v1/templates")).json()["items"] == []
