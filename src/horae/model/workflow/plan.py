"""A workflow's graph, compiled once for each version of its job and asked at every decision."""

from msgspec import Struct

from horae.model.workflow.values import Phase, Step, Workflow


class Node(Struct, frozen=True, kw_only=True):
    """A step with its edges."""

    step: Step
    phase: Phase
    upstreams: tuple[str, ...]  # steps of the same phase that must have ended before it
    followers: tuple[str, ...]  # those of which it is an upstream
    catches: bool = False  # a follower is there for its failure, which therefore fails nothing else


class Plan(Struct, frozen=True, kw_only=True):
    """A workflow ready for decisions."""

    workflow: Workflow
    nodes: dict[str, Node]
    order: dict[Phase, tuple[str, ...]]  # the steps of each phase, upstreams first
    leaves: tuple[str, ...]  # steps of the main phase that nothing follows


def plan_of(workflow: Workflow) -> Plan:
    """Compile a workflow that has been checked."""
    raise NotImplementedError
