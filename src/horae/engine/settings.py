"""What can be set about the engine; `config` fills it from flags, environment and file."""

from msgspec import Struct

from horae.env import SECOND, Micros
from horae.model.admission.rate import Rate
from horae.model.fleet.protocol import LOG_LIMIT
from horae.model.tenancy.users import RoleMapping

DAY: Micros = 86_400 * SECOND


class OidcSettings(Struct, frozen=True, kw_only=True):
    """An identity provider, and what its groups stand for."""

    issuer: str
    client_id: str
    client_secret: str = ""
    scopes: str = "openid profile email groups"
    name_claim: str = "preferred_username"
    groups_claim: str = "groups"
    roles: dict[str, RoleMapping]
    redirect: str = ""  # where browsers come back to; empty: the server's own URL
    allow: tuple[str, ...] = ()  # addresses beside public ones at which it may be


class EngineSettings(Struct, frozen=True, kw_only=True):
    """Times and bounds of one server."""

    features: tuple[str, ...] = ()  # those that are switched off, as "-alerts"
    verbose: bool = False  # every turn of an execution is logged
    session_timeout: Micros = 15 * SECOND
    heartbeat: Micros = 5 * SECOND  # the longest a worker's poll is held
    batch_requests: int = 1024  # submissions in one group commit
    batch_bytes: int = 4 * 1024 * 1024
    max_pending: int = 16_384  # submissions that may wait for a commit before new ones get a 503
    promote_batch: int = 500
    fire_batch: int = 1000
    rescue_batch: int = 200
    retention: Micros = 30 * DAY  # of executions
    fire_retention: Micros = 30 * DAY
    watch_roots: tuple[str, ...] = ()  # URLs of the places that may be watched
    artifacts: str = "artifacts"  # a folder, or the URL of a bucket
    artifact_limit: int = 1 << 30  # bytes of one
    master_keys: str = ""  # what secrets are sealed with
    master_key_file: str = ""  # where they are read from instead
    make_master_key: bool = False  # in that file, at the first start of a store: only one that no other server shares
    log_limit: int = LOG_LIMIT  # bytes of one attempt's log
    sign_in_idle: Micros = DAY  # how long somebody who signed in may be away
    sign_in_life: Micros = 7 * DAY  # how long a sign-in lasts at most
    oidc: OidcSettings | None = None
    outbound_allow: tuple[str, ...] = ()  # what notices of alerts may reach beside public addresses
    request_rate: Rate | None = None  # of each credential that has none of its own
    sessions_per_key: int = 5_000  # of workers that are there
    namespace_request_rate: Rate | None = None  # of each namespace, beside others
    namespace_submit_rate: Rate | None = None  # of executions of each namespace, beside others
    namespace_streams: int = 1000  # streams of events that a namespace may follow at a time
    url: str = ""  # where other servers' workers reach this one
