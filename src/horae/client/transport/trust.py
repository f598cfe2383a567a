"""TLS trust: the certificates that a client accepts, and the one that it presents."""

import ssl

from horae.config.load import load
from horae.config.settings import Settings
from horae.errors import BadInput


def trust(settings: Settings | None = None) -> ssl.SSLContext:
    """Return the TLS context for the settings: with their certificate authorities or else the system's.

    It presents the client certificate of the settings, if there is one.
    """
    settings = settings or load().settings
    try:
        context = ssl.create_default_context(cafile=settings.ca or None)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or str(error)
        raise BadInput(
            f"{settings.ca} cannot be used: {reason}.", "Name a PEM file with HORAE_CA.", field="ca"
        ) from None
    if settings.client_cert:
        _load_client_certificate(context, settings)
    return context


def _load_client_certificate(context: ssl.SSLContext, settings: Settings) -> None:
    try:
        context.load_cert_chain(settings.client_cert, settings.client_key or None)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or str(error)
        raise BadInput(
            f"The certificate {settings.client_cert} cannot be used: {reason}.",
            "Name PEM files that belong together with HORAE_CLIENT_CERT and HORAE_CLIENT_KEY.",
            field="client_cert",
        ) from None
