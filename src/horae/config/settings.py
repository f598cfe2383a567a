"""All settings: name, type, default and meaning, in one table.

A setting `session_timeout` is `session_timeout` in horae.toml, `HORAE_SESSION_TIMEOUT` in the environment and, where a
command takes it, `--session-timeout` on the command line. docs/configuration.md is checked against this table.
"""

from pathlib import Path
from typing import Annotated, Any, get_type_hints

from msgspec import Meta, Struct, field

from horae.config.server_settings import DurationSetting, Secret, ServerSettings, about

DEFAULT_URL = "http://127.0.0.1:8420"


class Settings(ServerSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings with their defaults, which `load` replaces by the values that the user has set."""

    # Clients of a server: the CLI, the SDK and workers
    url: Annotated[
        tuple[str, ...], about("The URLs of the servers. Workers try the next one if one does not answer.")
    ] = (DEFAULT_URL,)
    key: Annotated[
        Secret,
        about(
            "The API key for requests to the server. Empty: for a server on this machine, the key in `data`/admin.key."
        ),
    ] = Secret()
    namespace: Annotated[str, about("The namespace to use, if the key may use several. Empty: the key's own.")] = ""

    ca: Annotated[
        str,
        about(
            "A PEM file with the authorities that are trusted to sign servers' TLS certificates. Empty: the"
            " system's authorities."
        ),
    ] = ""
    client_cert: Annotated[str, about("A PEM file with the certificate to show to a server that requires one.")] = ""
    client_key: Annotated[
        str, about("A PEM file with the private key of `client_cert`. Empty: the key is in the same file.")
    ] = ""

    # Workers
    queues: Annotated[
        tuple[str, ...],
        about(
            'The queues from which a worker takes executions, perhaps with weights, as in "critical=5,default=1",'
            ' or in an order, as in "critical>default".'
        ),
    ] = ("default",)
    concurrency: Annotated[int, Meta(ge=1, le=100_000), about("How many executions a worker runs at a time.")] = 10
    labels: Annotated[
        dict[str, str], about('The labels of a worker, which jobs may need, such as "gpu=a100,region=eu".')
    ] = field(default_factory=dict)
    resources: Annotated[
        dict[str, str], about('The resources of a worker besides slots, such as "memory=8GiB,gpu=2".')
    ] = field(default_factory=dict)
    pass_env: Annotated[
        tuple[str, ...], about("More variables of a worker's environment that are passed to its commands.")
    ] = ()
    command_memory: Annotated[
        str,
        about(
            "The most memory of a command and all its processes, unless its job sets a limit: a size, or a share"
            " of the machine's (or the container's) memory. 0: no limit."
        ),
    ] = "80%"
    command_processes: Annotated[
        int,
        Meta(ge=0),
        about("The most simultaneous processes of a command, unless its job sets a limit. 0: no limit."),
    ] = 1024
    command_cpu: Annotated[
        DurationSetting,
        about("The most processor time of a command and all its processes, unless its job sets a limit. 0: no limit."),
    ] = DurationSetting(0)
    command_files: Annotated[
        int,
        Meta(ge=0),
        about("The most open files of each process of a command, unless its job sets a limit. 0: the system's limit."),
    ] = 0
    command_output: Annotated[
        str,
        about(
            "The most bytes that a command may write to its log, stored or not, unless its job sets a limit. 0:"
            " no limit."
        ),
    ] = "1GiB"
    command_file_size: Annotated[
        str, about("The largest size of a file that a command writes, unless its job sets a limit. 0: no limit.")
    ] = ""
    command_user: Annotated[
        str,
        about(
            "The user that runs commands of jobs without a user; the worker must run as root. Empty: the worker's"
            " own user."
        ),
    ] = ""
    command_users: Annotated[
        tuple[str, ...],
        about("The users that jobs may choose for their commands. Empty: any except root, if the worker runs as root."),
    ] = ()
    outbound_allow: Annotated[
        tuple[str, ...],
        about(
            "The addresses that http jobs, alerts and sign-in may call besides public ones: addresses, networks,"
            " hosts (also `*.internal`), or `private`. Empty: none."
        ),
    ] = ()
    secret_env: Annotated[
        tuple[str, ...], about("The variables of a worker's environment that jobs may use as secret://env/NAME.")
    ] = ()
    secret_files: Annotated[
        str, about("A folder of a worker whose files jobs may use as secret://file/NAME. Empty: none.")
    ] = ""
    spot: Annotated[
        bool,
        about("Whether a worker's machine can be taken away at short notice. The worker then has the label `spot`."),
    ] = False
    notice_file: Annotated[
        str,
        about(
            "A file whose appearance announces that a worker's machine will be taken away; the worker then hands"
            " its executions back in time."
        ),
    ] = ""
    notice_url: Annotated[
        str,
        about(
            "A URL that tells when a worker's machine will be taken away, or the name of a cloud that has one:"
            " aws, gcp or azure."
        ),
    ] = ""
    enrol: Annotated[
        Secret,
        about("A single-use token that a worker exchanges for a key of its own, which it stores in `data`/worker.key."),
    ] = Secret()
    worker_name: Annotated[
        str, about("The worker's name. Empty: it is built from the host name and the process id.")
    ] = ""
    app: Annotated[str, about('The location of the App with the python jobs: "package.module:app".')] = ""

    @property
    def store_url(self) -> str:
        """The URL of the store, also if `store` is empty."""
        return self.store or f"sqlite:///{self.data / 'horae.db'}"

    @property
    def artifacts_url(self) -> str:
        """The location of artifacts, also if `artifacts` is empty."""
        return self.artifacts or str(self.data / "artifacts")

    @property
    def direct_url(self) -> str:
        """The URL of the store without a pooler, for commands that open the store only briefly."""
        return self.store_direct or self.store_url

    @property
    def public_url(self) -> str:
        """The URL at which others reach this server, also if `advertise` is empty."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.advertise or f"{'https' if self.tls_cert else 'http'}://{host}:{self.port}"

    @property
    def key_file(self) -> Path:
        """The file to which the first start writes the administrator's key."""
        return self.data / "admin.key"

    @property
    def master_key_path(self) -> Path:
        """The file of the master key, also if `master_key_file` is empty."""
        return Path(self.master_key_file).expanduser() if self.master_key_file else self.data / "secret.key"

    @property
    def worker_key_file(self) -> Path:
        """The file in which a worker stores the key of its enrolment."""
        return self.data / "worker.key"


class Setting(Struct, frozen=True):
    """One row of the table of settings: a setting with its type, default and meaning."""

    name: str
    type: Any
    default: Any
    meaning: str

    @property
    def variable(self) -> str:
        return f"HORAE_{self.name.upper()}"

    @property
    def is_secret(self) -> bool:
        return _plain(self.type) is Secret


def _plain(annotated: Any) -> Any:
    return getattr(annotated, "__origin__", annotated)


def _row(name: str) -> Setting:
    annotated = _TYPES[name]
    meaning = next(m.description for m in reversed(annotated.__metadata__) if m.description)
    return Setting(name, annotated, getattr(DEFAULTS, name), meaning)


DEFAULTS = Settings()
_TYPES = get_type_hints(Settings, include_extras=True)
TABLE: dict[str, Setting] = {name: _row(name) for name in Settings.__struct_fields__}
RENAMED = {  # former name -> current name
    "secret_key": "master_key", "secret_key_file": "master_key_file",
    "session_idle": "sign_in_idle", "session_life": "sign_in_life",
}  # fmt: skip
