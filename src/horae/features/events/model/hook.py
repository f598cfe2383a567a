"""The fields of a request for a trigger's webhook, declared once."""

from typing import Annotated

from msgspec import Struct

from horae.model.fields.kinds import Custom, Flag, SpanText, Text, as_given
from horae.model.fields.table import Field, Table

_SPAN = Custom(as_given, SpanText, "Span")


class HookRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    """A request to create a webhook, or to give it a new secret."""

    secret: Annotated[
        str | None, Field(Text(256), "The sender's secret; by default a new secret is generated.", flag="")
    ] = None
    new_url: Annotated[bool, Field(Flag(), "Create a new URL beside the old one.")] = False
    old_for: Annotated[str | float, Field(_SPAN, "How long the old secret or URL stays valid.", metavar="SPAN")] = "1d"


HOOK = Table(HookRequest, "A webhook")
