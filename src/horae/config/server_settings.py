"""The settings of a server, as one part of all settings, and the types of settings."""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from horae.env import SECOND
from horae.model.base.duration import DAY, format_duration
from horae.model.fleet.protocol import LOG_LIMIT


class DurationSetting(int):
    """A duration in microseconds. Users write it as "15s", "1h30m", in ISO 8601, or as a number of seconds."""

    def __str__(self) -> str:
        return format_duration(self)


class Secret(str):
    """A text that is shown as *** in output."""

    def __repr__(self) -> str:
        return "'***'" if self else "''"


Port = Annotated[int, Meta(ge=0, le=65535)]
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "text", "json"]


def about(meaning: str) -> Meta:
    """Return the meaning of a setting as an annotation of its field."""
    return Meta(description=meaning)


class ServerSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a server with their defaults."""

    # Storage and listening
    data: Annotated[Path, about("The folder for all state: horae.db, admin.key, secret.key, artifacts/.")] = Path()
    store: Annotated[
        str, about("The store: sqlite:///path or postgresql://user:password@host/database. Empty: horae.db in `data`.")
    ] = ""
    store_hot_connections: Annotated[
        int,
        Meta(ge=1, le=100),
        about(
            "The most connections to PostgreSQL for frequent operations, such as submitting, claiming and reporting."
        ),
    ] = 4
    store_cold_connections: Annotated[
        int, Meta(ge=1, le=100), about("The most connections to PostgreSQL for all other operations.")
    ] = 4
    store_direct: Annotated[
        str,
        about(
            "PostgreSQL's own URL if `store` leads to a pooler that pools by transaction, such as PgBouncer with"
            " pool_mode = transaction."
        ),
    ] = ""
    artifacts: Annotated[
        str,
        about(
            "Where artifacts (files of executions) are stored: a folder, or s3://bucket/prefix, gs://... or"
            " az://... Several servers need one location that all of them can reach. Empty: artifacts/ in `data`."
        ),
    ] = ""
    artifact_limit: Annotated[int, Meta(ge=1), about("The largest size of one artifact in bytes.")] = 1 << 30
    log_limit: Annotated[
        int,
        Meta(ge=65_536),
        about(
            "The most bytes of log that are stored for one attempt; for all attempts of an execution, eight times"
            " as many."
        ),
    ] = LOG_LIMIT
    host: Annotated[
        str,
        about(
            "The address to listen on. The default is reachable only from this machine, `0.0.0.0` also from"
            " others. Without `tls_cert` they use plain HTTP, which the server warns about when it starts."
        ),
    ] = "127.0.0.1"
    port: Annotated[Port, about("The port to listen on; 0 takes a free one.")] = 8420
    tls_cert: Annotated[
        str, about("A PEM file with the server's certificate and its chain. If it is set, the server uses TLS.")
    ] = ""
    tls_key: Annotated[
        str, about("A PEM file with the private key of the certificate. Empty: the key is in `tls_cert`.")
    ] = ""
    tls_client_ca: Annotated[
        str,
        about(
            "A PEM file with the authority that signs workers' certificates. If it is set, workers must show a"
            " certificate."
        ),
    ] = ""
    max_connections: Annotated[int, Meta(ge=1), about("The most simultaneous connections to a server.")] = 20_000
    max_connections_per_address: Annotated[
        int,
        Meta(ge=1),
        about(
            "The most simultaneous connections from one address. For a trusted proxy, only `max_connections` applies."
        ),
    ] = 1_000
    trusted_proxies: Annotated[
        tuple[str, ...],
        about(
            "Addresses and networks of the proxies in front of this server. The headers `X-Forwarded-For`,"
            " `-Proto` and `-Host` are used only if they come from these."
        ),
    ] = ("127.0.0.0/8", "::1")
    proxy_hops: Annotated[
        int,
        Meta(ge=1, le=10),
        about(
            "The number of trusted proxies that a request passes one after another, which is the number of"
            " entries of `X-Forwarded-For` that are used."
        ),
    ] = 1
    cors_origins: Annotated[
        tuple[str, ...],
        about(
            "Sites whose pages may call the API with a key, such as `https://dash.example.com`, or `*` for all."
            " Cookies of such calls are ignored. Empty: none."
        ),
    ] = ()
    allowed_hosts: Annotated[
        tuple[str, ...],
        about(
            "Host names under which clients may call this server. Requests to other names are refused, except"
            " health checks. Empty: any name."
        ),
    ] = ()
    request_rate: Annotated[
        str,
        about(
            "The highest rate of requests that one key or user may send to each server, such as `100/1s`, unless"
            " the key has a rate of its own. Exchanges of workers are not counted. Empty: no limit."
        ),
    ] = ""
    sessions_per_key: Annotated[
        int,
        Meta(ge=1),
        about(
            "The most simultaneous sessions of workers with one key. Further workers are refused until a session ends."
        ),
    ] = 5_000
    namespace_request_rate: Annotated[
        str,
        about(
            "The highest rate of requests that one namespace may send to each server while other namespaces use"
            " this server. Exchanges of workers are not counted. Empty: no limit."
        ),
    ] = "1000/1s"
    namespace_submit_rate: Annotated[
        str,
        about(
            "The highest rate of executions that one namespace may submit to each server while other namespaces"
            " use this server, unless the namespace has the quota `submissionsPerSecond`. An event counts as ten."
            " Empty: no limit."
        ),
    ] = "10000/1s"
    namespace_streams: Annotated[
        int, Meta(ge=1), about("The most event streams that one namespace may follow at the same time on each server.")
    ] = 1000
    advertise: Annotated[
        str,
        about(
            "The URL at which workers and other servers reach this server. Empty: it is built from `host` and `port`."
        ),
    ] = ""
    admin_key: Annotated[
        Secret,
        about("The first administrator's key. Empty: the first start creates one and writes it to `data`/admin.key."),
    ] = Secret()
    master_key: Annotated[
        Secret,
        about(
            "The master key that encrypts secrets: 32 bytes as base64. Of several, separated by commas, the first"
            " encrypts, and all can decrypt. Servers that share a store need the same keys."
        ),
    ] = Secret()
    master_key_file: Annotated[
        str,
        about(
            "A file with the master key, used if `master_key` is empty. Empty: `data`/secret.key, which the first"
            " start creates unless the store is PostgreSQL."
        ),
    ] = ""

    # Features of a server
    features: Annotated[
        tuple[str, ...],
        about(
            'Features to switch off, such as `["-alerts", "-events"]`, or `-alerts,-events` in the environment.'
            " All other features are on."
        ),
    ] = ()

    # Timing and bounds of a server
    session_timeout: Annotated[DurationSetting, about("How long a worker may be silent before it counts as lost.")] = (
        DurationSetting(15 * SECOND)
    )
    heartbeat: Annotated[
        DurationSetting,
        about("The longest time between two heartbeats of a worker; at most a half of `session_timeout`."),
    ] = DurationSetting(5 * SECOND)
    drain_grace: Annotated[
        DurationSetting,
        about(
            "How long a stopping process waits for running executions to end before it hands them back to the queue."
        ),
    ] = DurationSetting(30 * SECOND)
    retention: Annotated[DurationSetting, about("How long ended executions and their logs are retained.")] = (
        DurationSetting(30 * DAY)
    )
    fire_retention: Annotated[DurationSetting, about("How long the record of each fire of a trigger is retained.")] = (
        DurationSetting(30 * DAY)
    )
    sign_in_idle: Annotated[
        DurationSetting, about("How long a signed-in user may be inactive before signing in again.")
    ] = DurationSetting(DAY)
    sign_in_life: Annotated[DurationSetting, about("How long a sign-in lasts at most.")] = DurationSetting(7 * DAY)
    oidc_issuer: Annotated[str, about("The URL of the identity provider (issuer) at which users sign in.")] = ""
    oidc_client_id: Annotated[str, about("The client id of Horae at the identity provider.")] = ""
    oidc_client_secret: Annotated[
        Secret, about("The client secret of Horae at the identity provider. Empty: Horae is a public client.")
    ] = Secret()
    oidc_scopes: Annotated[str, about("The scopes to request from the identity provider.")] = (
        "openid profile email groups"
    )
    oidc_name_claim: Annotated[str, about("The claim with the user's name.")] = "preferred_username"
    oidc_groups_claim: Annotated[str, about("The claim with the user's groups.")] = "groups"
    oidc_roles: Annotated[
        dict[str, str],
        about(
            'The roles of groups, as "group=namespace:role", or with permissions "group=default:editor+commands".'
            ' The group "*" contains all users. Users in none of these groups cannot sign in.'
        ),
    ] = {}
    oidc_redirect: Annotated[
        str,
        about(
            "The URL to which browsers return after signing in. Empty: this server's URL with"
            " /api/v1/sign-in/oidc/callback."
        ),
    ] = ""
    watch_roots: Annotated[
        tuple[str, ...],
        about(
            "The locations that `watch` triggers may read with the server's own permissions: folders,"
            " s3://bucket/prefix and gs://bucket/prefix. Empty: none."
        ),
    ] = ()
    otlp_endpoint: Annotated[
        str,
        about(
            "The URL to which traces are sent by OTLP over HTTP, such as http://collector:4318. It needs the"
            " extra `otel`. Empty: OTEL_EXPORTER_OTLP_ENDPOINT, if that is set."
        ),
    ] = ""
    log_level: Annotated[
        LogLevel, about("The lowest level of log lines that are written: debug, info, warning or error.")
    ] = "info"
    log_format: Annotated[
        LogFormat, about("The format of log lines: text, json, or auto (text on a terminal, else json).")
    ] = "auto"
