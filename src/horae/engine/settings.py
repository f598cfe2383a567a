"""Settings of the engine. The package `config` reads them from flags, environment and file."""

from msgspec import Struct

from horae.env import SECOND, Micros
from horae.model.admission.rate import Rate
from horae.model.fleet.protocol import LOG_LIMIT
from horae.model.tenancy.users import RoleMapping

DAY: Micros = 86_400 * SECOND


class OidcSettings(Struct, frozen=True, kw_only=True):
    """An identity provider, and the roles of its groups."""

    issuer: str
    client_id: str
    client_secret: str = ""
    scopes: str = "openid profile email groups"
    name_claim: str = "preferred_username"
    groups_claim: str = "groups"
    roles: dict[str, RoleMapping]
    redirect: str = ""  # the URL to which browsers return; empty: the server's own URL
    allow: tuple[str, ...] = ()  # addresses that the provider may have in addition to public ones


class EngineSettings(Struct, frozen=True, kw_only=True):
    """Intervals, limits and options of one server."""

    features: tuple[str, ...] = ()  # disabled features, such as "-alerts"
    verbose: bool = False  # log every grant and every end of an execution
    session_timeout: Micros = 15 * SECOND  # a session without an exchange for this time is lost
    heartbeat: Micros = 5 * SECOND  # the longest time that a worker's exchange waits for work
    batch_requests: int = 1024  # submissions in one group commit
    batch_bytes: int = 4 * 1024 * 1024
    max_pending: int = 16_384  # submissions that may wait for a commit before new ones get a 503
    promote_batch: int = 500  # slices promoted in one transaction
    fire_batch: int = 1000  # timers decided in one transaction
    rescue_batch: int = 200  # slices of a lost session taken back in one transaction
    retention: Micros = 30 * DAY  # how long ended executions are kept
    fire_retention: Micros = 30 * DAY  # how long rows of the ledger are kept
    watch_roots: tuple[str, ...] = ()  # URLs of folders and buckets that may be watched
    artifacts: str = "artifacts"  # a folder, or the URL of a bucket
    artifact_limit: int = 1 << 30  # bytes of one artifact
    master_keys: str = ""  # the keys that seal secrets
    master_key_file: str = ""  # a file with these keys, instead
    make_master_key: bool = False  # generate this file at the first start of a store that no other server shares
    log_limit: int = LOG_LIMIT  # bytes of one attempt's log
    sign_in_idle: Micros = DAY  # a user's sign-in ends after this time without a request
    sign_in_life: Micros = 7 * DAY  # a user's sign-in ends after this time in any case
    oidc: OidcSettings | None = None
    outbound_allow: tuple[str, ...] = ()  # addresses that outbound requests may reach in addition to public ones
    request_rate: Rate | None = None  # requests of each credential without a rate of its own
    sessions_per_key: int = 5_000  # live sessions of workers with the same key
    namespace_request_rate: Rate | None = None  # requests of each namespace, while several use the server
    namespace_submit_rate: Rate | None = None  # executions of each namespace, while several use the server
    namespace_streams: int = 1000  # event streams of a namespace at a time
    url: str = ""  # the address at which all workers reach this server, also workers that use another server now
