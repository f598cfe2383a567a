"""The JSON form of sealed values: an object with one text, unreadable without the key."""

import base64

import msgspec
from msgspec import Raw, Struct

MARK = b'{"$sealed":'


class SealedText(Struct, frozen=True):
    """A sealed value as JSON."""

    text: str = msgspec.field(name="$sealed")


def is_sealed(value: bytes | Raw) -> bool:
    return bytes(value).startswith(MARK)


def encode_sealed(sealed: bytes) -> bytes:
    """Encode sealed bytes as JSON."""
    return msgspec.json.encode(SealedText(base64.b64encode(sealed).decode()))


def decode_sealed(value: bytes | Raw) -> bytes:
    """Decode the sealed bytes of a JSON value. Raises ValueError when it is not one."""
    try:
        return base64.b64decode(msgspec.json.decode(value, type=SealedText).text, validate=True)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
