"""Convert settings to the values that the engine and the store take."""

from msgspec.structs import replace

from horae.config.settings import TABLE, Settings
from horae.engine.settings import EngineSettings, OidcSettings
from horae.errors import BadInput
from horae.model.admission.rate import Rate, parse_rate
from horae.model.tenancy.users import read_mapping
from horae.model.triggers.decisions.external import watch_url
from horae.store.open import Connections


def engine_settings(settings: Settings) -> EngineSettings:
    """Return the settings of the engine."""
    return EngineSettings(
        features=settings.features,
        verbose=settings.log_level == "debug",
        session_timeout=int(settings.session_timeout),
        heartbeat=int(settings.heartbeat),
        retention=int(settings.retention),
        fire_retention=int(settings.fire_retention),
        watch_roots=tuple(watch_url(root, "watch_roots") for root in settings.watch_roots),
        artifacts=settings.artifacts_url,
        artifact_limit=settings.artifact_limit,
        log_limit=settings.log_limit,
        master_keys=str(settings.master_key),
        master_key_file=str(settings.master_key_path),
        make_master_key=not settings.master_key_file and settings.store_url.startswith("sqlite:"),
        sign_in_idle=int(settings.sign_in_idle),
        sign_in_life=int(settings.sign_in_life),
        oidc=_oidc(settings),
        outbound_allow=settings.outbound_allow,
        sessions_per_key=settings.sessions_per_key,
        request_rate=_rate(settings.request_rate, "request_rate"),
        namespace_request_rate=_rate(settings.namespace_request_rate, "namespace_request_rate"),
        namespace_submit_rate=_rate(settings.namespace_submit_rate, "namespace_submit_rate"),
        namespace_streams=settings.namespace_streams,
        # with port 0, the URL is known only when the server listens
        url=settings.public_url if settings.port or settings.advertise else "",
    )


def _rate(text: str, field: str) -> Rate | None:
    if not text:
        return None
    rate = parse_rate(text, field)
    return replace(rate, burst=rate.count)


def _oidc(settings: Settings) -> OidcSettings | None:
    """Return the settings of the identity provider, if one is set."""
    if not settings.oidc_issuer:
        return None
    if not settings.oidc_client_id or not settings.oidc_roles:
        missing = "oidc_roles" if settings.oidc_client_id else "oidc_client_id"
        raise BadInput(f"oidc_issuer is set, but {missing} is not.", TABLE[missing].meaning, field=missing)
    return OidcSettings(
        issuer=settings.oidc_issuer,
        client_id=settings.oidc_client_id,
        client_secret=str(settings.oidc_client_secret),
        scopes=settings.oidc_scopes,
        name_claim=settings.oidc_name_claim,
        groups_claim=settings.oidc_groups_claim,
        roles={group: read_mapping(group, text) for group, text in settings.oidc_roles.items()},
        redirect=settings.oidc_redirect,
        allow=settings.outbound_allow,
    )


def connections(settings: Settings) -> Connections:
    """Return the numbers of connections to PostgreSQL, and PostgreSQL's own URL behind a pooler."""
    return Connections(
        hot=settings.store_hot_connections, cold=settings.store_cold_connections, direct=settings.store_direct
    )
