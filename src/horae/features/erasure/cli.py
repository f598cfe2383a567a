"""`horae executions erase`: erase the personal data of executions; the record that they ran stays."""

from typing import Any

import click

from horae.cli.fields import given_by, options_of
from horae.cli.lazy import HoraeCommand
from horae.cli.prompts import confirm
from horae.cli.remote import Api, remote
from horae.features.erasure.model import SELECTION


@click.command(
    cls=HoraeCommand,
    examples=("horae executions erase --tag customer=c-17", "horae executions erase --param customer=c-17 --yes"),
)
@options_of(SELECTION)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@remote
async def erase(api: Api, yes: bool, **options: Any) -> None:
    """Erase personal data from executions that have ended.

    Params, results, errors, logs, files, tags and keys are erased, also those of executions that the erased executions
    submitted. The times and final states of all these executions stay. The audit log stores a receipt. The exit code is
    1 if some executions were not erased, or if an archive file could not be searched; these are listed with the reason.
    """
    if not yes:
        confirm("Erased data cannot be restored. Continue?")
    done = (await api.client.erasures.create(**SELECTION.keywords(given_by(SELECTION, options)))).raw
    if not api.out.is_for_people:
        api.out.document(done)
    else:
        api.out.say(f"Erased {done['erased']:,} of {done['examined']:,} matching executions.")
        for execution in done["notEnded"]:
            api.out.say(f"This execution was not erased, because it has not ended: {execution}")
        for execution in done["undecryptable"]:
            api.out.say(f"This execution was not erased, because the server has no key to read its params: {execution}")
        for file in done["unreadableFiles"]:
            api.out.say(f"This archive file was not searched, because it is damaged or missing: {file}")
    if done["notEnded"] or done["undecryptable"] or done["unreadableFiles"]:
        click.get_current_context().exit(1)
