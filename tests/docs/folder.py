"""A folder in which a user follows the documentation, with one terminal for the server and one for commands."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEFAULT_URL = "http://127.0.0.1:8420"
CURL = """#!{python}
# The features of curl that the tour uses, in case it is not installed.
import argparse, urllib.request
parser = argparse.ArgumentParser()
for flag in ("-X", "-H", "-d"):
    parser.add_argument(flag)
parser.add_argument("-s", action="store_true")
parser.add_argument("url")
a = parser.parse_args()
name, _, value = a.H.partition(": ")
request = urllib.request.Request(a.url, a.d and a.d.encode(), {{name: value}}, method=a.X or ("POST" if a.d else "GET"))
print(urllib.request.urlopen(request).read().decode(), end="")
"""


class Folder:
    """The place of the tour: a folder, an environment, and at times a server."""

    def __init__(self, path: Path) -> None:
        self.path = path
        tools = path / "tools"
        tools.mkdir()
        if shutil.which("curl") is None:
            (tools / "curl").write_text(CURL.format(python=sys.executable))
            (tools / "curl").chmod(0o755)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("HORAE_")}
        places = [str(Path(sys.executable).parent), str(tools), clean["PATH"]]
        self.env = clean | {"PATH": os.pathsep.join(places)}
        self.url = ""

    @contextmanager
    def up(self, command: str) -> Iterator[None]:
        """Start the command that the tour leaves running; only the port differs, so that two runs do not collide."""
        process = subprocess.Popen(
            command.split(), cwd=self.path, env=self.env | {"HORAE_PORT": "0"}, stdout=subprocess.PIPE, text=True
        )
        try:
            words = ""
            while "Ctrl-C stops it" not in words and (line := process.stdout.readline()):
                words += line
            self.url = re.search(r"is up at (\S+)", words)[1]
            yield
            process.terminate()
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.communicate()

    def run(self, script: str) -> str:
        """Run a block of the tour, as typed into the other terminal."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script.replace(DEFAULT_URL, self.url)],
            cwd=self.path,
            env=self.env | {"HORAE_URL": self.url},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
