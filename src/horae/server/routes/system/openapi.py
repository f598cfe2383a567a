"""The description of the API."""

from typing import Any

from horae.server.access import ANY_CREDENTIAL
from horae.server.call import ApiCall
from horae.server.reply import Response
from horae.server.route import get
from horae.server.scopes import unscoped


@get("/openapi.json", "openapi.read", dict[str, Any], access=ANY_CREDENTIAL, scope=unscoped)
async def read(call: ApiCall) -> Response:
    """Read this document: every route of this server with its input, answers and errors, as OpenAPI 3.1."""
    return Response(200, call.scope["app"].document)


@get("/worker-protocol.json", "openapi.protocol", dict[str, Any], access=ANY_CREDENTIAL, scope=unscoped)
async def protocol(call: ApiCall) -> Response:
    """Read the schemas of the worker protocol, as one JSON Schema document (2020-12)."""
    from horae.server.reading.schemas import protocol_document

    return Response(200, protocol_document())
