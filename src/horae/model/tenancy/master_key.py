"""Master keys as users write them: base64 of 32 bytes each. The first key encrypts, and every key decrypts."""

import base64
import binascii
import hashlib
import re

from msgspec import Struct

from horae.errors import BadInput

SIZE = 32  # bytes
MOST = 16  # keys in one setting
MAKE = "Make one with: openssl rand -base64 32"
_BETWEEN = re.compile(r"[,\s]+")


class MasterKey(Struct, frozen=True):
    """A key, and its id, which is stored with the values that the key seals. The id reveals nothing about the key."""

    id: bytes
    key: bytes

    def __repr__(self) -> str:
        return f"MasterKey({self.name})"

    @property
    def name(self) -> str:
        """Return the id in hexadecimal."""
        return self.id.hex()


def master_key(key: bytes) -> MasterKey:
    return MasterKey(hashlib.sha256(b"horae master key\0" + key).digest()[:8], key)


def read_master_keys(text: str) -> tuple[MasterKey, ...]:
    """Read keys separated by commas, spaces or line breaks, without duplicates. Errors reveal no part of a key."""
    parts = [part for part in _BETWEEN.split(text) if part]
    if len(parts) > MOST:
        raise BadInput(f"There are {len(parts)} master keys.", f"At most {MOST} are taken.", field="master_key")
    keys = [master_key(_read(part, number)) for number, part in enumerate(parts, 1)]
    return tuple({key.id: key for key in keys}.values())


def _read(part: str, number: int) -> bytes:
    try:
        key = base64.b64decode(part.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        raise BadInput(f"Master key {number} is not base64.", MAKE, field="master_key") from None
    if len(key) != SIZE:
        said = f"Master key {number} has {len(key)} bytes, and {SIZE} are needed."
        raise BadInput(said, MAKE, field="master_key")
    return key


def write_master_key(key: bytes) -> str:
    return base64.b64encode(key).decode()
