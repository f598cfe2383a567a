"""`tools/cluster`: one command per action."""

from pathlib import Path

import click

from tools.clusters.cluster import Cluster, ClusterError
from tools.clusters.programs import VERSIONS, Missing

FOLDER = Path("/tmp/horae-cluster")
ACTIONS = {
    "kill": "Kill a member as a machine dies.",
    "freeze": "Stop all processes of a member.",
    "thaw": "Let a frozen member go on.",
    "cut": "Cut a member off from all others and from clients.",
    "heal": "Connect a member again.",
    "start": "Start a killed member again.",
}


@click.group()
@click.option("--folder", type=click.Path(path_type=Path), default=FOLDER, show_default=True, help="Its folder.")
@click.pass_context
def main(context: click.Context, folder: Path) -> None:
    """Run a PostgreSQL cluster with automatic failover on this machine, and break it."""
    context.obj = folder


@main.command()
@click.option("--members", type=click.IntRange(1, 9), default=3, show_default=True)
@click.option("--postgres", type=click.Choice(VERSIONS), default=VERSIONS[0], show_default=True)
@click.option("--asynchronous", is_flag=True, help="Let a failover lose the last commits.")
@click.pass_obj
def up(folder: Path, members: int, postgres: str, asynchronous: bool) -> None:
    """Start a cluster, and print its URLs."""
    cluster = Cluster.create(folder, members=members, postgres=postgres, synchronous=not asynchronous)
    click.echo(f"all members: {cluster.url()}\nhaproxy:     {cluster.proxy_url()}\nleader:      {cluster.leader()}")


@main.command()
@click.pass_obj
def status(folder: Path) -> None:
    """List the members."""
    for one in Cluster.of(folder).status():
        click.echo(f"{one['name']:6} {one['role']:14} {one['state']:10} timeline {one.get('timeline', '-')}")


@main.command()
@click.pass_obj
def switchover(folder: Path) -> None:
    """Let a standby take over in good order."""
    click.echo(Cluster.of(folder).switchover())


@main.command()
@click.pass_obj
def down(folder: Path) -> None:
    """End the cluster and delete its folder."""
    Cluster.of(folder).down()


def _action(name: str, line: str) -> None:
    @main.command(name, help=line)
    @click.argument("member", required=False)
    @click.pass_obj
    def act(folder: Path, member: str | None) -> None:
        cluster = Cluster.of(folder)
        target = member or cluster.wait_for_leader()
        getattr(cluster, name)(target)
        click.echo(f"{name}: {target}")


for _name, _line in ACTIONS.items():
    _action(_name, _line)

if __name__ == "__main__":
    try:
        main(standalone_mode=True)
    except (ClusterError, Missing) as error:
        raise SystemExit(str(error)) from None
