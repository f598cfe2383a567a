"""`python -m tools.frameworks`: start each framework as it is deployed, and count the submissions that reach Horae."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tools.peers.environment import Environment, installed

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
REQUESTS = 40
PROGRAMS = ("shop.py", "flask_app.py", "django_app.py", "celery_app.py", "celery_asks.py")
PATIENCE = 120.0  # seconds; a child that hangs is a failure


@contextmanager
def started(command: list[str | Path], ready: str, **about: object) -> Iterator[str]:
    """Start a program and wait for a line of its output; end it afterwards."""
    pipe, out = subprocess.PIPE, subprocess.STDOUT
    process = subprocess.Popen(command, stdout=pipe, stderr=out, text=True, **about)  # type: ignore[call-overload]
    said = ""
    try:
        while not re.search(ready, said):
            line = process.stdout.readline()
            if not line:
                raise SystemExit(f"{command} has ended:\n{said}")
            said += line
        yield said
    finally:
        process.terminate()
        try:
            process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise SystemExit(f"{command} did not end in 30 s") from None


def environment() -> Environment:
    """Install the frameworks in an environment; Horae and its packages come from the present one."""
    made = installed(HERE, root=ROOT / ".frameworks")
    own = [ROOT / "src", next(Path(sys.prefix).glob("lib/python3.*/site-packages"))]
    (made.site() / "horae.pth").write_text("".join(f"{path}\n" for path in own))
    return made


def check(name: str, answers: list[list[str]], processes: int) -> None:
    """Check that every submission has its own execution, and that several processes took part."""
    ids = [execution_id for _, *ids in answers for execution_id in ids]
    took_part = {pid for pid, *_ in answers}
    if len(set(ids)) != len(ids) or len(took_part) < processes:
        raise SystemExit(
            f"{name}: {len(ids)} submissions made {len(set(ids))} executions in {len(took_part)} processes"
        )
    print(f"{name}: {len(ids)} submissions, {len(took_part)} processes")


def ask(url: str) -> list[str]:
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return str(answer.read().decode()).split()


def served(python: Path, module: str, about: dict[str, object]) -> None:
    """Request a WSGI app behind gunicorn, loaded before it forks, with workers of several threads."""
    how = ["--preload", "--workers", "2", "--threads", "4", "--bind", "127.0.0.1:0", f"{module}:application"]
    with started([python, "-m", "gunicorn", *how], r"Booting worker.*\n(.*\n)*.*Booting worker", **about) as said:
        url = re.search(r"http://[\d.:]+", said)[0]  # type: ignore[index]
        with ThreadPoolExecutor(8) as pool:
            for path in ("sync", "async"):
                check(f"{module}/{path}", list(pool.map(ask, [f"{url}/{path}"] * REQUESTS)), 2)


def worked(python: Path, about: dict[str, object]) -> None:
    """Let a prefork worker of Celery run tasks that submit."""
    how = ["-A", "celery_app:application", "worker", "--concurrency", "2", "--pool", "prefork", "--loglevel", "INFO"]
    with started([python, "-m", "celery", *how], "ready", **about):
        done = subprocess.run(
            [python, "celery_asks.py"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
            **about,  # type: ignore[call-overload]
        )
    check("celery", [line.split() for line in done.stdout.splitlines()], 1)


def main() -> None:
    python = environment().python
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for program in PROGRAMS:
            shutil.copy(HERE / program, folder)
        plain = {key: value for key, value in os.environ.items() if not key.startswith("HORAE_")}
        up = [Path(sys.executable).parent / "horae", "up", "--port", "0", "--data", folder, "--app", "shop:app"]
        with started(up, "Ctrl-C stops it", cwd=folder, env=plain) as said:
            url = re.search(r"is up at (\S+)", said)[1]  # type: ignore[index]
            own = {"HORAE_URL": url, "HORAE_DATA": name, "PRELOAD": "1", "FOLDER": name, "PYTHONPATH": name}
            about: dict[str, object] = {"cwd": folder, "env": plain | own}
            served(python, "flask_app", about)
            served(python, "django_app", about)
            worked(python, about)


if __name__ == "__main__":
    main()
