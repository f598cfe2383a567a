"""Checks of secret references in a definition: where they are allowed, and where their values would be exposed."""

from horae.errors import BadInput
from horae.model.definitions.job import Spec
from horae.model.definitions.tasks import CommandTask, PythonTask
from horae.model.tenancy.secret_refs import MOST_SECRETS, SCHEME, texts_in
from horae.model.workflows.decisions.values import Workflow

_ARGV = (
    'Arguments are seen by everybody on the machine: put it into env, as {"TOKEN": "secret://token"}, and let the'
    " program read $TOKEN there."
)
_PARAMS = "A command reads it from env; a function with ctx.secret(NAME), when `secrets` names it."


def check_references(spec: Spec) -> None:
    """Refuse references in places where they would not be filled in, or would be exposed."""
    if isinstance(spec.task, CommandTask):
        _refuse_seen(spec.task)
    if any(SCHEME in text for text, _ in texts_in(spec.params, "params")):
        raise BadInput("params refer to a secret, and secrets are not filled into params.", _PARAMS, field="params")
    if spec.secrets and not isinstance(spec.task, PythonTask):
        remedy = "Put secret://NAME into env of a command, or into url, headers or body of an http job."
        raise BadInput("secrets is for functions, which ask for them with ctx.secret.", remedy, field="secrets")
    found = spec.references
    if found and isinstance(spec.task, Workflow):
        remedy = "Let the jobs that are its steps refer to it."
        raise BadInput("A workflow runs nothing itself that could use a secret.", remedy, field="env")
    if len(found) > MOST_SECRETS:
        raise BadInput(f"It refers to {len(found)} secrets.", f"At most {MOST_SECRETS} are allowed.", field="secrets")


def _refuse_seen(task: CommandTask) -> None:
    texts = [(word, f"command[{i}]") for i, word in enumerate(task.argv)]
    texts += [(task.shell or "", "command.shell"), (task.cwd or "", "command.cwd")]
    for text, field in texts:
        if SCHEME in text:
            raise BadInput(f"{field} refers to a secret.", _ARGV, field=field)
