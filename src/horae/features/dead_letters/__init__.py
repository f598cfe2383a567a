"""Dead letters: failed executions set aside, grouped, retried, replayed or discarded."""

from horae.feature import Feature

FEATURE = Feature(
    name="dead_letters",
    about="Failed executions set aside, grouped, retried, replayed or discarded.",
    part="horae.features.dead_letters.part:DeadLettersPart",
)
