"""What a body is: plain JSON in UTF-8, and a clear answer to everything else."""

from collections.abc import Mapping

from horae.server.problems import UnsupportedMedia

GZIP = b"\x1f\x8b"
JSON_BEGINS = b'{["'
CHARSETS = (b"utf-8", b"utf8", b"us-ascii")


def check_media(headers: Mapping[bytes, bytes], body: bytes, *, is_json: bool) -> None:
    """Refuse a body that is packed, in another charset or, where JSON is read, of another type.

    A body that begins as JSON does passes under any name: `curl -d` calls everything a form.
    """
    coding = headers.get(b"content-encoding", b"identity")
    if coding.lower() != b"identity" or body.startswith(GZIP):
        raise UnsupportedMedia("The body is packed.", "Send it as it is, without Content-Encoding.")
    kind, _, options = headers.get(b"content-type", b"").lower().partition(b";")
    charset = options.partition(b"charset=")[2].partition(b";")[0].strip(b' "')
    if charset and charset not in CHARSETS:
        raise UnsupportedMedia(f"The body is in {_shown(charset)}.", "Send JSON in UTF-8.")
    kind = kind.strip()
    if is_json and kind and not kind.endswith((b"/json", b"+json")) and body.lstrip()[:1] not in JSON_BEGINS:
        raise UnsupportedMedia(f"The body is {_shown(kind)}.", "Send JSON, with `Content-Type: application/json`.")


def _shown(text: bytes) -> str:
    return text[:60].decode("latin-1")
