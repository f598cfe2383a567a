"""Bodies of requests about jobs, for the OpenAPI document; `model/definitions` reads them and names every mistake."""

from horae.model.definitions.job import JOB
from horae.model.fields.derived import body
from horae.server.reading.bodies import Body

JobPatch = body(JOB, "JobPatch", "Parts of a job's definition; null takes a field back to its default.", Body)
JobBody = body(
    JOB,
    "JobBody",
    "A job: its name, one of command, python, http and workflow, and whatever else differs from the defaults.",
    Body,
    needed=("name",),
)
