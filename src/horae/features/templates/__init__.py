"""Templates: jobs made from one definition with parameters, changed together."""

from horae.feature import Feature, Routes

FEATURE = Feature(
    name="templates",
    about="Make and change jobs from one definition with parameters.",
    tables="horae.features.templates.store.tables",
    routes=(Routes("horae.features.templates.routes", after="limits"),),
)
