"""`horae executions erase`: erase personal data; the record of the execution stays."""

from typing import Any

import click

from horae.cli.asking import confirm
from horae.cli.fields import given_by, options_of
from horae.cli.lazy import HoraeCommand
from horae.cli.remote import Api, remote
from horae.features.erasure.model import SELECTION


@click.command(
    cls=HoraeCommand,
    examples=("horae executions erase --tag customer=c-17", "horae executions erase --param customer=c-17 --yes"),
)
@options_of(SELECTION)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@remote
async def erase(api: Api, yes: bool, **options: Any) -> None:
    """Erase somebody's data from executions that have ended.

    Params, results, errors, logs, files, tags and keys go, also of what these executions submitted; that they ran, when
    and how they ended stays. The audit log keeps a receipt. Exit 1 names those that were left, and why.
    """
    if not yes:
        confirm("What is erased does not come back. Go on?")
    done = (await api.client.erasures.create(**SELECTION.keywords(given_by(SELECTION, options)))).raw
    if not api.out.is_for_people:
        api.out.document(done)
    else:
        api.out.say(f"Erased {done['erased']:,} of {done['lookedAt']:,} executions that were checked.")
        for execution in done["live"]:
            api.out.say(f"Not erased, because it has not ended: {execution}")
        for execution in done["unread"]:
            api.out.say(f"Not erased, because the server has no key to read what it was given: {execution}")
        for file in done["unreadFiles"]:
            api.out.say(f"Not searched, because it is damaged or gone: {file}")
    if done["live"] or done["unread"] or done["unreadFiles"]:
        click.get_current_context().exit(1)
