"""Whom a client trusts when a server speaks TLS, and what it shows of itself."""

import ssl

from horae.config.load import load
from horae.config.settings import Settings
from horae.errors import BadInput


def trust(settings: Settings | None = None) -> ssl.SSLContext:
    """The authorities and the certificate that the settings name; without them, those that everybody trusts."""
    settings = settings or load().settings
    try:
        context = ssl.create_default_context(cafile=settings.ca or None)
    except (OSError, ssl.SSLError) as error:
        said = error.strerror or str(error)
        raise BadInput(f"{settings.ca} cannot be used: {said}.", "Name a PEM file with HORAE_CA.", field="ca") from None
    if settings.client_cert:
        _show(context, settings)
    return context


def _show(context: ssl.SSLContext, settings: Settings) -> None:
    try:
        context.load_cert_chain(settings.client_cert, settings.client_key or None)
    except (OSError, ssl.SSLError) as error:
        said = error.strerror or str(error)
        raise BadInput(
            f"The certificate {settings.client_cert} cannot be shown: {said}.",
            "Name PEM files that belong together with HORAE_CLIENT_CERT and HORAE_CLIENT_KEY.",
            field="client_cert",
        ) from None
