"""The outcome for a body of each noun of a feature: its stored and shown forms."""

import json
from collections.abc import Callable
from typing import Any

import msgspec

from horae.errors import BadInput
from horae.features.alerts.model.channel import Channel, private_part, public_part, read_channel, redacted
from horae.features.alerts.model.rule import RULE
from horae.features.backfills.model.request import BACKFILL, read_request
from horae.features.dead_letters.routes import DeadLetterFilter, ReplayBody
from horae.features.erasure.routes import ErasureBody
from horae.features.events.hook_routes import HookBody
from horae.features.rollouts.model.read import plan_of
from horae.features.rollouts.model.read import read_request as read_rollout
from horae.features.templates.model.values import read_template
from horae.server.reading.bodies import decode
from tests.model.fields import feature_corpus


def _plain(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


def _rule(body: Any) -> list[Any]:
    rule = RULE.read(body)
    return [{"subjects": ["*"], **_plain(rule)}, RULE.write(rule)]


def _channel(body: Any, before: Channel | None = None) -> list[Any]:
    channel = read_channel(body, before)
    kept = {"kind": channel.kind, "public": public_part(channel), "private": private_part(channel)}
    said = {"description": channel.description} if channel.description else {}
    return [
        _plain({name: part for name, part in {**kept, **said}.items() if part}),
        redacted(channel),
        channel.references,
    ]


def _changed(body: Any) -> list[Any]:
    kind = body.get("kind") if isinstance(body, dict) else None
    known = feature_corpus.KEPT.get(kind) if isinstance(kind, str) else None
    return _channel(body, None if known is None else read_channel({"kind": kind, **known}))


def _template(body: Any) -> list[Any]:
    return _plain(read_template("", body))


def _rollout(body: Any) -> list[Any]:
    request = read_rollout(body)
    return [_plain(plan_of(request, 5, 6 if request.change is not None else None))]


def _decoded(type: Any) -> Callable[[Any], list[Any]]:
    """Decode a body as a route with this type does."""
    decoder = msgspec.json.Decoder(type)

    def read(body: Any) -> list[Any]:
        try:
            sent = json.dumps(body).encode()
        except TypeError:
            raise BadInput("no JSON", "") from None
        return [_plain(decode(sent, decoder))]

    return read


ANSWERS: dict[str, Callable[[Any], list[Any]]] = {
    "rule": _rule,
    "channel": _channel,
    "changed channel": _changed,
    "template": _template,
    "rollout": _rollout,
    "backfill": lambda body: [BACKFILL.write_changed(read_request(body))],
    "replay": _decoded(ReplayBody),
    "dead letters": _decoded(DeadLetterFilter),
    "webhook": _decoded(HookBody),
    "erasure": _decoded(ErasureBody),
}
