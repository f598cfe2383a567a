"""The master key of the installation, which encrypts the secrets of all namespaces."""

from horae.errors import MasterKeyMissing
from horae.model.tenancy.secret_view import RotationView
from horae.server.access import INSTALLATION
from horae.server.call import ApiCall
from horae.server.reply import Response, ok
from horae.server.route import ACTION, API, post
from horae.server.scopes import closed


@post(
    f"{API}/master-key/rotation", "master-key.rotate", RotationView,
    access=INSTALLATION, scope=closed, audit=ACTION, idempotency="none", refuses=(MasterKeyMissing,),
)  # fmt: skip
async def rotate(call: ApiCall) -> Response:
    """Encrypt all secrets of all namespaces with the first master key, so that other keys can be removed."""
    return ok(await call.node.tenancy.sealed_kinds.rotate())
