"""TLS: the server's certificate, read again when it is renewed, and who must show one."""

import ssl
from pathlib import Path

import structlog

from horae.errors import BadInput

LOOK = 60.0  # seconds between looks whether the files have changed

log = structlog.get_logger("horae.server")


class Tls:
    """A server's certificate and key, and the authority whose certificates clients may show."""

    def __init__(self, certificate: Path, key: Path, client_authority: Path | None = None) -> None:
        self._files, self._authority = (certificate, key), client_authority
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        self._load()
        if client_authority is not None:
            self._trust(client_authority)
        self._seen, self._looked_at = self._changed_at(), 0.0

    @property
    def asks_for_certificates(self) -> bool:
        """Whether workers must show one."""
        return self._authority is not None

    def follow(self, now: float) -> None:
        """Use a renewed certificate for connections from now on; one that cannot be read leaves the old one."""
        if now - self._looked_at < LOOK:
            return
        self._looked_at = now
        changed_at = self._changed_at()
        if changed_at == self._seen:
            return
        try:
            self._load()
        except BadInput as error:
            log.error("the renewed certificate cannot be used", error=str(error))
        else:
            log.info("the certificate was renewed")
        self._seen = changed_at

    def _load(self) -> None:
        try:
            self.context.load_cert_chain(*self._files)
        except (OSError, ssl.SSLError) as error:
            said = error.strerror or str(error)
            raise BadInput(
                f"The certificate {self._files[0]} with the key {self._files[1]} cannot be used: {said}.",
                "Name PEM files that belong together with tls_cert and tls_key.",
                field="tls_cert",
            ) from None

    def _trust(self, authority: Path) -> None:
        try:
            self.context.load_verify_locations(authority)
        except (OSError, ssl.SSLError) as error:
            said = error.strerror or str(error)
            remedy = "Name a PEM file with the authority that signs workers' certificates."
            raise BadInput(f"{authority} cannot be used: {said}.", remedy, field="tls_client_ca") from None
        self.context.verify_mode = ssl.CERT_OPTIONAL  # people's browsers have none; routes of workers ask for one

    def _changed_at(self) -> tuple[int, ...]:
        try:
            return tuple(file.stat().st_mtime_ns for file in self._files)
        except OSError:
            return ()
