"""Rollouts: run another version of a job for a share of its new executions first."""

from horae.feature import Command, Feature, Routes

FEATURE = Feature(
    name="rollouts",
    about="Run a new version of a job for a share of its executions first.",
    tables="horae.features.rollouts.store.tables",
    holdings="horae.features.rollouts.store.rollouts:HOLDINGS",
    part="horae.features.rollouts.part:RolloutsPart",
    routes=(Routes("horae.features.rollouts.routes", after="versions"),),
    topics=(("rollouts", "rollout"),),
    commands=(Command("jobs rollout", "horae.features.rollouts.cli:rollout"),),
    show_job="horae.features.rollouts.cli:show_job",
)
