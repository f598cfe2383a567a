"""All settings: name, type, default and meaning, in one table.

A setting `session_timeout` is `session_timeout` in horae.toml, `HORAE_SESSION_TIMEOUT` in the environment and, where a
command takes it, `--session-timeout` on the command line. docs/configuration.md is checked against this table.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from horae.env import SECOND
from horae.model.base.duration import DAY, format_duration
from horae.model.fleet.protocol import LOG_LIMIT

DEFAULT_URL = "http://127.0.0.1:8420"


class DurationSetting(int):
    """A length of time in microseconds, written as "15s", "1h30m", ISO 8601 or seconds."""

    def __str__(self) -> str:
        return format_duration(self)


class Secret(str):
    """A text that is masked in output."""

    def __repr__(self) -> str:
        return "'***'" if self else "''"


Port = Annotated[int, Meta(ge=0, le=65535)]
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "text", "json"]


def _about(meaning: str) -> Meta:
    return Meta(description=meaning)


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings with their defaults; `load` fills it."""

    # Storage and listening
    data: Annotated[Path, _about("The folder for all state: horae.db, admin.key, secret.key, artifacts/.")] = Path()
    store: Annotated[
        str, _about("The store: sqlite:///path or postgresql://user:password@host/database. Empty: horae.db in `data`.")
    ] = ""
    store_hot_connections: Annotated[
        int, Meta(ge=1, le=100), _about("Connections to PostgreSQL for submitting, claiming and reporting, at most.")
    ] = 4
    store_cold_connections: Annotated[
        int, Meta(ge=1, le=100), _about("Connections to PostgreSQL for everything else, at most.")
    ] = 4
    store_direct: Annotated[
        str,
        _about(
            "PostgreSQL's own URL when `store` leads to a pooler by transaction, such as PgBouncer with pool_mode ="
            " transaction."
        ),
    ] = ""
    artifacts: Annotated[
        str,
        _about(
            "Where files of executions are kept: a folder, or s3://bucket/prefix, gs://... or az://... Several servers"
            " need one place that all of them reach. Empty: artifacts/ in `data`."
        ),
    ] = ""
    artifact_limit: Annotated[int, Meta(ge=1), _about("Bytes of one artifact, at most.")] = 1 << 30
    log_limit: Annotated[
        int,
        Meta(ge=65_536),
        _about("Bytes that an attempt may write to its log; eight times that is kept of an execution."),
    ] = LOG_LIMIT
    host: Annotated[
        str,
        _about(
            "The address to listen on; only this machine reaches the default. Others reach `0.0.0.0`; without"
            " `tls_cert` over plain HTTP, and a start warns of it."
        ),
    ] = "127.0.0.1"
    port: Annotated[Port, _about("The port to listen on; 0 takes a free one.")] = 8420
    tls_cert: Annotated[
        str, _about("The server's certificate with its chain, a PEM file: with it, the server speaks TLS.")
    ] = ""
    tls_key: Annotated[str, _about("The certificate's private key, a PEM file. Empty: it is in `tls_cert`.")] = ""
    tls_client_ca: Annotated[
        str, _about("The authority that signs workers' certificates, a PEM file: with it, workers must show one.")
    ] = ""
    max_connections: Annotated[int, Meta(ge=1), _about("Connections to a server, at most.")] = 20_000
    max_connections_per_address: Annotated[
        int, Meta(ge=1), _about("Connections from one address, at most; from a trusted proxy, as many as in all.")
    ] = 1_000
    trusted_proxies: Annotated[
        tuple[str, ...],
        _about(
            "Addresses and networks of the proxies in front of this server: `X-Forwarded-For`, `-Proto` and `-Host` are"
            " believed from them alone."
        ),
    ] = ("127.0.0.0/8", "::1")
    proxy_hops: Annotated[
        int,
        Meta(ge=1, le=10),
        _about("How many trusted proxies may stand in a row, so many entries of `X-Forwarded-For` are believed."),
    ] = 1
    cors_origins: Annotated[
        tuple[str, ...],
        _about(
            "Sites whose pages may call the API with a key, as `https://dash.example.com`, or `*`. Cookies are never"
            " taken from them. Empty: none."
        ),
    ] = ()
    allowed_hosts: Annotated[
        tuple[str, ...],
        _about("Names at which clients reach this server; others are refused, but for health checks. Empty: any."),
    ] = ()
    request_rate: Annotated[
        str,
        _about(
            "Requests of one key or person to each server, at most, as `100/1s`, unless the key has a rate of its own."
            " Empty: no bound. What workers exchange is not counted."
        ),
    ] = ""
    sessions_per_key: Annotated[
        int, Meta(ge=1), _about("Sessions of workers with one key, at most; others are refused until some end.")
    ] = 5_000
    namespace_request_rate: Annotated[
        str,
        _about(
            "Requests of one namespace to each server, at most, while other namespaces use that server. Exchanges of"
            " workers do not count. Empty: no bound."
        ),
    ] = "1000/1s"
    namespace_submit_rate: Annotated[
        str,
        _about(
            "Executions that one namespace submits to each server, at most, while other namespaces use that server and"
            " it has no quota `submissionsPerSecond`. An event counts as ten. Empty: no bound."
        ),
    ] = "10000/1s"
    namespace_streams: Annotated[
        int, Meta(ge=1), _about("Streams of events that one namespace may follow on each server, at most.")
    ] = 1000
    advertise: Annotated[
        str, _about("The URL at which workers and other servers reach this one. Empty: made from `host` and `port`.")
    ] = ""
    admin_key: Annotated[
        Secret, _about("Presets the first administrator's key. Empty: the first start makes one in `data`/admin.key.")
    ] = Secret()
    secret_key: Annotated[
        Secret,
        _about(
            "The master key that secrets are sealed with: base64 of 32 bytes. Several, separated by commas: the first"
            " seals, all open. Servers that share a store need the same."
        ),
    ] = Secret()
    secret_key_file: Annotated[
        str,
        _about(
            "A file that holds the master key instead. Empty: `data`/secret.key, which the first start makes unless the"
            " store is PostgreSQL."
        ),
    ] = ""

    # Features of a server
    features: Annotated[
        tuple[str, ...],
        _about(
            'Features that are switched off, as `["-alerts", "-events"]`, or `-alerts,-events` in the environment. All'
            " others are on."
        ),
    ] = ()

    # Timing and bounds of a server
    session_timeout: Annotated[DurationSetting, _about("How long a worker may be silent before it counts as lost.")] = (
        DurationSetting(15 * SECOND)
    )
    heartbeat: Annotated[
        DurationSetting,
        _about("The longest time between two heartbeats of a worker; at most a half of `session_timeout`."),
    ] = DurationSetting(5 * SECOND)
    drain_grace: Annotated[
        DurationSetting, _about("How long a stopping process lets running executions finish before it hands them back.")
    ] = DurationSetting(30 * SECOND)
    retention: Annotated[DurationSetting, _about("How long finished executions and their logs are kept.")] = (
        DurationSetting(30 * DAY)
    )
    fire_retention: Annotated[DurationSetting, _about("How long the record of each fire of a schedule is kept.")] = (
        DurationSetting(30 * DAY)
    )
    sign_in_idle: Annotated[
        DurationSetting, _about("How long a signed-in user may be inactive before signing in again.")
    ] = DurationSetting(DAY)
    sign_in_life: Annotated[DurationSetting, _about("How long a sign-in lasts at most.")] = DurationSetting(7 * DAY)
    oidc_issuer: Annotated[str, _about("The URL of the identity provider (issuer) at which users sign in.")] = ""
    oidc_client_id: Annotated[str, _about("The client id of Horae at the identity provider.")] = ""
    oidc_client_secret: Annotated[
        Secret, _about("The client secret at the identity provider. Empty: a public client.")
    ] = Secret()
    oidc_scopes: Annotated[str, _about("The scopes to request from the identity provider.")] = (
        "openid profile email groups"
    )
    oidc_name_claim: Annotated[str, _about("The claim with the user's name.")] = "preferred_username"
    oidc_groups_claim: Annotated[str, _about("The claim with the user's groups.")] = "groups"
    oidc_roles: Annotated[
        dict[str, str],
        _about(
            'The roles of groups: "group=namespace:role", with permissions "group=default:editor+commands"; the group'
            ' "*" is everybody. Users in none of these groups cannot sign in.'
        ),
    ] = {}
    oidc_redirect: Annotated[
        str, _about("The URL to which browsers return. Empty: this server's URL and /api/v1/sign-in/oidc/callback.")
    ] = ""
    watch_roots: Annotated[
        tuple[str, ...],
        _about(
            "The locations that `watch` triggers may read, with the server's own rights: folders, s3://bucket/prefix"
            " and gs://bucket/prefix. Empty: nothing."
        ),
    ] = ()
    otlp_endpoint: Annotated[
        str,
        _about(
            "The URL to which traces are sent by OTLP over HTTP, as http://collector:4318; needs the extra `otel`."
            " Empty: OTEL_EXPORTER_OTLP_ENDPOINT, if it is set."
        ),
    ] = ""
    log_level: Annotated[LogLevel, _about("What is logged: debug, info, warning or error.")] = "info"
    log_format: Annotated[LogFormat, _about("How it is logged: text, json, or auto (text on a terminal).")] = "auto"

    # Clients of a server: the CLI, the SDK and workers
    url: Annotated[
        tuple[str, ...], _about("The servers to talk to; workers try the next one when one does not answer.")
    ] = (DEFAULT_URL,)
    key: Annotated[
        Secret, _about("The key to talk with. Empty, with a server on this machine: the one in `data`/admin.key.")
    ] = Secret()
    namespace: Annotated[str, _about("The namespace to use with a key that may use several. Empty: the key's own.")] = (
        ""
    )

    ca: Annotated[
        str,
        _about("The authorities to trust for a server's TLS certificate, a PEM file. Empty: the system's authorities."),
    ] = ""
    client_cert: Annotated[str, _about("The certificate to show to a server that asks for one, a PEM file.")] = ""
    client_key: Annotated[str, _about("Its private key, a PEM file. Empty: it is in `client_cert`.")] = ""

    # Workers
    queues: Annotated[
        tuple[str, ...],
        _about('The queues a worker takes from; with weights "critical=5,default=1", in an order "critical>default".'),
    ] = ("default",)
    concurrency: Annotated[int, Meta(ge=1, le=100_000), _about("How many executions a worker runs at a time.")] = 10
    labels: Annotated[
        dict[str, str], _about('The labels of a worker that jobs may need, as "gpu=a100,region=eu".')
    ] = {}
    resources: Annotated[dict[str, str], _about('The resources of a worker beside slots, as "memory=8GiB,gpu=2".')] = {}
    pass_env: Annotated[
        tuple[str, ...], _about("Further variables of a worker's environment that its commands may see.")
    ] = ()
    command_memory: Annotated[
        str,
        _about(
            "Memory of a command and all that it starts, unless its job says another limit: a size, or a share of the"
            " machine's (or the container's). 0: no limit."
        ),
    ] = "80%"
    command_processes: Annotated[
        int, Meta(ge=0), _about("Processes of a command at once, unless its job says another limit. 0: no limit.")
    ] = 1024
    command_cpu: Annotated[
        DurationSetting,
        _about("Processor time of a command and all that it starts, unless its job says another. 0: no limit."),
    ] = DurationSetting(0)
    command_files: Annotated[
        int, Meta(ge=0), _about("Open files of a process of a command, unless its job says. 0: the system's limit.")
    ] = 0
    command_output: Annotated[
        str, _about("Bytes that a command may write to its log, kept or not, unless its job says. 0: no limit.")
    ] = "1GiB"
    command_file_size: Annotated[
        str, _about("The size of a file that a command writes, unless its job says. 0: no limit.")
    ] = ""
    command_user: Annotated[
        str,
        _about("The user for commands of jobs without a user; the worker has to be root. Empty: the worker's own."),
    ] = ""
    command_users: Annotated[
        tuple[str, ...], _about("The users that commands may name. Empty: any but root, if the worker is root.")
    ] = ()
    outbound_allow: Annotated[
        tuple[str, ...],
        _about(
            "Addresses that http jobs, alerts and sign-in may call beside public ones:"
            " addresses, networks, hosts (also `*.internal`), or `private`. Empty: nothing else."
        ),
    ] = ()
    secret_env: Annotated[
        tuple[str, ...], _about("Variables of a worker's environment that jobs may use as secret://env/NAME.")
    ] = ()
    secret_files: Annotated[
        str, _about("A folder of a worker whose files jobs may use as secret://file/NAME. Empty: none.")
    ] = ""
    spot: Annotated[
        bool, _about("Whether a worker's machine can be taken away at short notice: it carries the label `spot`.")
    ] = False
    notice_file: Annotated[
        str,
        _about("A file whose appearance announces that a worker's machine goes away: it hands its work back in time."),
    ] = ""
    notice_url: Annotated[
        str, _about("A URL that says when a worker's machine goes away, or a cloud's own by name: aws, gcp or azure.")
    ] = ""
    enrol: Annotated[
        Secret,
        _about("A token that a worker exchanges for a key of its own, once; it keeps the key in `data`/worker.key."),
    ] = Secret()
    worker_name: Annotated[str, _about("The worker's name. Empty: made from host name and process id.")] = ""
    app: Annotated[str, _about('Where the python jobs are: "package.module:app".')] = ""

    @property
    def store_url(self) -> str:
        """The URL of the store, with the default resolved."""
        return self.store or f"sqlite:///{self.data / 'horae.db'}"

    @property
    def artifacts_url(self) -> str:
        """The location of artifacts, with the default resolved."""
        return self.artifacts or str(self.data / "artifacts")

    @property
    def direct_url(self) -> str:
        """The URL of the store without a pooler, for commands that open it for a moment."""
        return self.store_direct or self.store_url

    @property
    def public_url(self) -> str:
        """The URL at which others reach this server, with the default resolved."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.advertise or f"{'https' if self.tls_cert else 'http'}://{host}:{self.port}"

    @property
    def key_file(self) -> Path:
        """The file to which the first start writes the administrator's key."""
        return self.data / "admin.key"

    @property
    def secret_key_path(self) -> Path:
        """The file of the master key, with the default resolved."""
        return Path(self.secret_key_file).expanduser() if self.secret_key_file else self.data / "secret.key"

    @property
    def worker_key_file(self) -> Path:
        """The file in which a worker stores the key of its enrolment."""
        return self.data / "worker.key"


class Setting(Struct, frozen=True):
    """One row of the table of settings."""

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
    annotated = Settings.__annotations__[name]
    meaning = next(m.description for m in reversed(annotated.__metadata__) if m.description)
    return Setting(name, annotated, getattr(DEFAULTS, name), meaning)


DEFAULTS = Settings()
TABLE: dict[str, Setting] = {name: _row(name) for name in Settings.__struct_fields__}
RENAMED = {"session_idle": "sign_in_idle", "session_life": "sign_in_life"}  # former name -> present name
