"""The signatures of webhooks: Standard Webhooks 1.0 and X-Hub-Signature-256."""

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horae.env import SECOND
from horae.errors import BadInput, BadSignature
from horae.model.base.webhook_signature import check_secret, sign, verify

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + "A" * 32
NOW = 1_614_265_330 * SECOND
BODY = b'{"test": 2432232314}'


def standard(body=BODY, secret=SECRET, *, id="msg_p5jXN8AQM9LWM0D4loKWxJek", at=NOW // SECOND, signature=None):
    return {
        b"webhook-id": id.encode(),
        b"webhook-timestamp": str(at).encode(),
        b"webhook-signature": (signature or sign(secret, id, at, body)).encode(),
    }


def hub(body=BODY, secret="It's a Secret to Everybody"):
    return {b"x-hub-signature-256": b"sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest().encode()}


def test_the_vector_of_the_standard():
    signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

    assert sign(SECRET, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, BODY) == signature
    assert verify(standard(signature=signature), BODY, [SECRET], NOW).id == "msg_p5jXN8AQM9LWM0D4loKWxJek"


def test_the_vector_of_github():
    shown = b"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    body, secret = b"Hello, World!", "It's a Secret to Everybody"

    signed = verify({b"x-hub-signature-256": shown}, body, [secret], NOW)

    assert signed.id == f"sha256:{hashlib.sha256(body).hexdigest()}"


def test_one_of_several_signatures_and_of_several_secrets_is_enough():
    good = sign(SECRET, "msg_p5jXN8AQM9LWM0D4loKWxJek", NOW // SECOND, BODY)
    headers = standard(signature=f"v1a,zzz v1,wrong {good}")

    assert verify(headers, BODY, [OTHER, SECRET], NOW).id
    assert verify(hub(), BODY, ["another secret of it", "It's a Secret to Everybody"], NOW).id


def test_the_header_names_of_svix_are_accepted():
    headers = {name.replace(b"webhook", b"svix"): text for name, text in standard().items()}

    assert verify(headers, BODY, [SECRET], NOW).id


@pytest.mark.parametrize("seconds", [-300, 0, 300])
def test_clocks_may_differ_by_five_minutes(seconds):
    assert verify(standard(at=NOW // SECOND + seconds), BODY, [SECRET], NOW)


@pytest.mark.parametrize(
    ("headers", "body", "said"),
    [
        ({}, BODY, "no signature"),
        (standard(), BODY + b" ", "does not match"),
        (standard(secret=OTHER), BODY, "does not match"),
        (standard(signature="v1,"), BODY, "does not match"),
        (standard(signature="nonsense"), BODY, "does not match"),
        (standard(signature="v2," + sign(SECRET, "msg_x", 1, BODY)[3:]), BODY, "does not match"),
        (standard(at=NOW // SECOND - 301), BODY, "signed 301 s ago"),
        (standard(at=NOW // SECOND + 301), BODY, "301 s from now"),
        ({**standard(), b"webhook-timestamp": b"1614265331"}, BODY, "does not match"),
        ({**standard(), b"webhook-id": b"msg_other"}, BODY, "does not match"),
        ({**standard(), b"webhook-timestamp": b"yesterday"}, BODY, "is not a time"),
        ({**standard(), b"webhook-timestamp": "\u0661".encode()}, BODY, "is not a time"),
        ({k: v for k, v in standard().items() if k != b"webhook-timestamp"}, BODY, "webhook-timestamp is missing"),
        ({k: v for k, v in standard().items() if k != b"webhook-signature"}, BODY, "webhook-signature is missing"),
        ({**standard(), b"webhook-id": b"x" * 257}, BODY, "is not a valid id"),
        (hub(secret="another secret of it"), BODY, "does not match"),
        (hub(), BODY + b" ", "does not match"),
        ({b"x-hub-signature-256": b"sha256=abc"}, BODY, "64 hexadecimal"),
        ({b"x-hub-signature-256": b"sha1=" + b"0" * 40}, BODY, "64 hexadecimal"),
    ],
)
def test_an_invalid_request_is_refused_with_the_reason(headers, body, said):
    with pytest.raises(BadSignature, match=said) as refused:
        verify(headers, body, [SECRET, "It's a Secret to Everybody"], NOW)

    assert refused.value.status == 401
    assert refused.value.remedy


def test_without_a_secret_no_signature_is_valid():
    with pytest.raises(BadSignature):
        verify(standard(), BODY, [], NOW)


def test_an_unsigned_request_does_not_reveal_the_time():
    with pytest.raises(BadSignature, match="does not match"):
        verify(standard(secret=OTHER, at=1), BODY, [SECRET], NOW)


@given(st.dictionaries(st.sampled_from(sorted(standard() | hub())), st.binary(max_size=80)), st.binary(max_size=80))
def test_any_input_is_refused_without_a_crash(headers, body):
    with pytest.raises(BadSignature):
        verify(headers, body, [SECRET], NOW)


@pytest.mark.parametrize(
    "secret", ["short", "whsec_!!!!!!!!!!!!!!!!", "whsec_c2hvcnQ=", "x" * 300, "\u00e4" * 20, "a\nb" * 9]
)
def test_a_weak_or_broken_secret_is_refused(secret):
    with pytest.raises(BadInput) as refused:
        check_secret(secret)

    assert refused.value.fields["field"] == "secret"


@pytest.mark.parametrize("secret", [SECRET, "It's a Secret to Everybody"])
def test_a_custom_secret_may_be_any_long_text(secret):
    assert check_secret(secret) == secret
