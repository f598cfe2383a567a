"""The JSON form of sealed (encrypted) values: an object with one text, which is unreadable without the master key."""

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
    """Decode the sealed bytes of a JSON value. Raises ValueError when the value is not sealed."""
    try:
        return base64.b64decode(msgspec.json.decode(value, type=SealedText).text, validate=True)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
