"""Write the fields of a job as the UI's form and its definitions read them."""

import json

from horae.model.definitions.job import JOB
from horae.model.fields.derived import described

HEAD = "// The fields of a job in their order. `python -m tools.sdk` writes this module from their table.\n\n"


def text() -> str:
    """Return the module."""
    lines = [json.dumps({name: part for name, part in one.items() if name != "example"}) for one in described(JOB)]
    return f"{HEAD}export const FIELDS = [\n" + "".join(f"  {line},\n" for line in lines) + "];\n"
