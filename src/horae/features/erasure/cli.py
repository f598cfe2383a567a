"""`horae executions erase`: somebody's data goes, that something ran stays."""

import click

from horae.cli.asking import confirm
from horae.cli.lazy import Command
from horae.cli.remote import Api, remote
from horae.cli.values import params as read_params


@click.command(
    cls=Command,
    examples=("horae executions erase --tag customer=c-17", "horae executions erase --param customer=c-17 --yes"),
)
@click.option("--job", metavar="JOB", help="Only executions of this job.")
@click.option("--tag", metavar="NAME[=VALUE]", help="Those with this tag.")
@click.option("--key", metavar="KEY", help="Those that were submitted with this key.")
@click.option("--param", "values", multiple=True, metavar="NAME=VALUE", help="Those that were given this; repeatable.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@remote
async def erase(
    api: Api, job: str | None, tag: str | None, key: str | None, values: tuple[str, ...], yes: bool
) -> None:
    """Erase somebody's data from executions that have ended.

    Params, results, errors, logs, files, tags and keys go, also of what these executions submitted; that they ran, when
    and how they ended stays. The audit log keeps a receipt. Exit 1 names those that were left, and why.
    """
    if not yes:
        confirm("What is erased does not come back. Go on?")
    done = (await api.client.erasures.create(job=job, tag=tag, key=key, params=read_params(values))).raw
    if not api.out.is_for_people:
        api.out.document(done)
    else:
        api.out.say(f"Erased {done['erased']:,} of {done['lookedAt']:,} executions that were looked at.")
        for id in done["live"]:
            api.out.say(f"Not erased, because it has not ended: {id}")
        for id in done["unread"]:
            api.out.say(f"Not erased, because the server has no key to read what it was given: {id}")
        for file in done["unreadFiles"]:
            api.out.say(f"Not looked through, because it is damaged or gone: {file}")
    if done["live"] or done["unread"] or done["unreadFiles"]:
        click.get_current_context().exit(1)
