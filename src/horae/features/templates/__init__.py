"""Templates: jobs made from one definition with parameters, and changed together with it."""

from horae.feature import Command, Feature, Routes

FEATURE = Feature(
    name="templates",
    about="Make and change jobs from one definition with parameters.",
    tables="horae.features.templates.store.tables",
    holdings="horae.features.templates.store.templates:HOLDINGS",
    templates="horae.features.templates.engine.templates:StoredTemplates",
    part="horae.features.templates.part:TemplatesPart",
    routes=(Routes("horae.features.templates.routes", after="versions"),),
    commands=(
        Command(
            "templates",
            "horae.features.templates.cli:templates",
            "Write, list and delete templates of jobs; show the effect of a change.",
            section="Jobs",
            after="fires",
        ),
    ),
)
