"""`horae sign-in`: a link that signs one browser in."""

import click

from horae.cli.lazy import HoraeCommand
from horae.cli.remote import Api, remote
from horae.cli.terminal import echo


@click.command("sign-in", cls=HoraeCommand, examples=("horae sign-in", "horae sign-in --browser"))
@click.option("--browser", is_flag=True, help="Also open the link in this machine's browser.")
@remote
async def sign_in(api: Api, browser: bool) -> None:
    """Print a link with which one browser can sign in.

    The link works once, within ten minutes, and signs in with the permissions of the key that you use: keep it as
    secret as that key.
    """
    link = (await api.client.keys.sign_in_link()).raw
    if api.out.is_for_people:
        echo(link["url"])
        echo("The link works once, within ten minutes.", err=True)
    else:
        api.out.document(link)
    if browser and click.launch(link["url"]) != 0:
        echo("No browser could be opened: open the link yourself.", err=True)
