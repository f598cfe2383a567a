"""Sealing: confidential values are encrypted with a master key that the database does not hold.

A sealed value is `1 | key id (8) | salt (16) | nonce (12) | AES-256-GCM`. Every value has its own data key, derived
from the master key and the salt, so that any number of values can be sealed safely. The context (table and row) is
authenticated too: a value that was moved to another row does not open.
"""

import hmac
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from horae import private
from horae.env import Env
from horae.errors import BadInput, MasterKeyMissing
from horae.model.tenancy.master_key import SIZE, MasterKey, read_master_keys, write_master_key
from horae.store.base import sealing
from horae.store.contract import Store

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

FORMAT = b"\x01"
ID, SALT, NONCE, TAG = 8, 16, 12, 16
HEAD = len(FORMAT) + ID
LEAST = HEAD + SALT + NONCE + TAG
_REMEDY = (
    "Give every server the same master key: HORAE_MASTER_KEY, or a file named by HORAE_MASTER_KEY_FILE;"
    " `openssl rand -base64 32` makes one."
)
log = structlog.get_logger("horae.engine")


class Sealer:
    """Seals values with the first master key, and opens values that any of the master keys sealed.

    The master keys are in the text `keys`, or in the `file`, which may be generated if `make` is true.
    `prepare` reads the keys and compares them with those that the store was sealed with. Until then, and when none of
    them matches, nothing is sealed: a value under a wrong key would be lost with that key.
    """

    def __init__(self, env: Env, store: Store, keys: str = "", file: str = "", *, make: bool = False) -> None:
        self._env, self._store, self._make = env, store, make
        self._text, self._file = keys, Path(file) if file else None
        self._keys: dict[bytes, MasterKey] = {}
        self._refusal: MasterKeyMissing | None = _no_key()
        self.gave_first_key = False  # whether this server has recorded the first master key of the store

    async def prepare(self, *, recording: bool = True) -> None:
        """Read the master keys; the first start of a store may generate one. Wrong keys do not stop the server.

        With `recording` false, nothing is logged or stored: for commands that only read, and report problems
        themselves.
        """
        known = await self._store.read(sealing.known_keys)
        try:
            keys = self._read(known)
        except BadInput as error:
            self._refusal = MasterKeyMissing(error.detail, error.remedy)
            if recording:
                log.error("the master key cannot be read: nothing is sealed or opened", error=str(error))
            return
        self._keys = {key.id: key for key in keys}
        self._refusal = _refusal(keys, known)
        if recording and self._refusal is not None and (known or keys):
            log.error("secrets cannot be sealed", error=str(self._refusal))
        if recording and self._refusal is None and keys[0].name not in known:
            await self._store.write(lambda: sealing.record_key(keys[0].name, self._env.now()))
            self.gave_first_key = not known

    @property
    def refusal(self) -> MasterKeyMissing | None:
        """The reason why nothing can be sealed, if there is one."""
        return self._refusal

    @property
    def names(self) -> frozenset[str]:
        """The names of this server's master keys."""
        return frozenset(key.name for key in self._keys.values())

    @property
    def can_seal(self) -> bool:
        """True if there is a master key that fits the store."""
        return self._refusal is None

    def seal(self, plain: bytes, context: bytes) -> bytes:
        """Encrypt a value for one context. Raises MasterKeyMissing when no master key fits the store."""
        if self._refusal is not None:
            raise MasterKeyMissing(self._refusal.detail, self._refusal.remedy)
        key = next(iter(self._keys.values()))
        salt, nonce = os.urandom(SALT), os.urandom(NONCE)
        head = FORMAT + key.id
        return head + salt + nonce + _cipher(key, salt).encrypt(nonce, plain, head + context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """Decrypt a value that was sealed for this context. Raises MasterKeyMissing when no key opens it."""
        if len(sealed) < LEAST or sealed[:1] != FORMAT:
            raise _broken()
        head = sealed[:HEAD]
        key = self._keys.get(head[1:])
        if key is None:
            raise _unknown(head[1:].hex(), self._keys)
        salt, nonce = sealed[HEAD : HEAD + SALT], sealed[HEAD + SALT : HEAD + SALT + NONCE]
        from cryptography.exceptions import InvalidTag

        try:
            return _cipher(key, salt).decrypt(nonce, sealed[HEAD + SALT + NONCE :], head + context)
        except InvalidTag:
            raise _broken() from None

    def sign(self, message: bytes) -> bytes:
        """Sign a message with the first master key. The signature is empty when no key fits the store."""
        if self._refusal is not None:
            return b""
        return _signature(next(iter(self._keys.values())), message)

    def is_signed(self, message: bytes, signature: bytes) -> bool:
        """Return whether one of the keys signed this message; True also if this server has no key to check it with."""
        if not self._keys:
            return True
        key = self._keys.get(signature[:ID])
        return key is not None and hmac.compare_digest(signature, _signature(key, message))

    def is_current(self, sealed: bytes) -> bool:
        """Return whether a value is sealed with the first master key."""
        return bool(self._keys) and sealed[1:HEAD] == next(iter(self._keys))

    def reseal(self, sealed: bytes, context: bytes) -> bytes:
        """Return a value sealed anew with the first master key."""
        return self.seal(self.open(sealed, context), context)

    def _read(self, known: frozenset[str]) -> tuple[MasterKey, ...]:
        if self._text:
            return read_master_keys(self._text)
        if self._file is None:
            return ()
        try:
            if not self._file.exists():
                if known or not self._make:
                    return ()
                _make_file(self._file)
            return read_master_keys(self._file.read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{self._file} cannot be read: {error}.", "Let the server's account read it.") from None


def _signature(key: MasterKey, message: bytes) -> bytes:
    return key.id + hmac.digest(key.key, b"horae signature\0" + message, "sha256")


def _cipher(key: MasterKey, salt: bytes) -> "AESGCM":
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(hmac.digest(key.key, b"horae data key\0" + salt, "sha256"))


def _make_file(path: Path) -> None:
    """Write a new key to a file that only its owner can read. Keep a file that another process made meanwhile."""
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        new.unlink(missing_ok=True)
        with os.fdopen(private.create_file(new), "w") as open_file:
            open_file.write(write_master_key(os.urandom(SIZE)) + "\n")
            open_file.flush()
            os.fsync(open_file.fileno())
        with suppress(FileExistsError):
            path.hardlink_to(new)
        new.unlink()
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}.", "Choose another folder with --data.") from None


def _refusal(keys: tuple[MasterKey, ...], known: frozenset[str]) -> MasterKeyMissing | None:
    if not keys and not known:
        return _no_key()
    if known and known.isdisjoint(key.name for key in keys):
        return _unknown(", ".join(sorted(known)), {key.id: key for key in keys})
    return None


def _no_key() -> MasterKeyMissing:
    return MasterKeyMissing("This server has no master key to seal secrets with.", _REMEDY)


def _unknown(name: str, keys: dict[bytes, MasterKey]) -> MasterKeyMissing:
    given = ", ".join(key.name for key in keys.values()) or "none"
    detail = f"Sealed data of this store needs the master key {name}; this server was given {given}."
    return MasterKeyMissing(detail, "Give it that key, too: HORAE_MASTER_KEY=NEW,OLD, or both in the key file.")


def _broken() -> MasterKeyMissing:
    detail = "A sealed value cannot be opened: it is damaged, or was copied from another place."
    return MasterKeyMissing(detail, "Set it again; if it came from a backup, restore the whole backup.")
