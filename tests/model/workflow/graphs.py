"""Random workflows: graphs with joins, conditions, switches, foreach, loops, undo steps and handlers."""

from random import Random
from typing import Any

from horae.model.workflows.decisions.values import JOINS, Workflow
from horae.model.workflows.reading.workflow import parse_workflow

# A rule that can never match a certain kind of upstream is refused when the workflow is made.
RULES = (*(["allSuccess"] * 6), *(rule for rule in JOINS if rule not in ("allSuccess", "allSkipped", "allFailed")))


def random_workflow(rng: Random, steps: int) -> tuple[Workflow, dict[str, Any]]:
    """Return a workflow with this many steps, and params that decide its conditions."""
    params: dict[str, Any] = {"list": [1, 2, 3], "none": []}
    main = [_step(rng, i, params) for i in range(steps)]
    _add_switches(rng, main, params)
    body: dict[str, Any] = {"steps": main, "onError": rng.choice(("fail", "fail", "finish", "ignore"))}
    for field in ("onSuccess", "onFailure", "finally"):
        if rng.random() < 0.4:
            body[field] = [_handler(rng, field, i) for i in range(rng.randint(1, 3))]
    rng.shuffle(main)
    return parse_workflow(body), params


def _step(rng: Random, i: int, params: dict[str, Any]) -> dict[str, Any]:
    name = f"s{i}"
    step: dict[str, Any] = {"name": name, "job": "j"}
    before = [f"s{k}" for k in range(max(0, i - 12), i)]
    upstreams = rng.sample(before, min(len(before), rng.choice((0, 1, 1, 1, 2, 2, 3))))
    spoken = [up for up in upstreams if rng.random() < 0.3]
    if upstreams:
        step["after"] = [up for up in upstreams if up not in spoken]
        step["join"] = rng.choice(RULES)
    if spoken:
        step["params"] = {up: f"${{steps.{up}.result}}" for up in spoken}
    if rng.random() < 0.2:
        params[name] = rng.random() < 0.6
        step["when"] = f"${{params.{name}}}" if rng.random() < 0.9 else f"${{params.{name}.no}}"
    _add_kind(rng, step)
    return step


def _add_kind(rng: Random, step: dict[str, Any]) -> None:
    kind = rng.random()
    if kind < 0.15:
        step["foreach"] = {"items": rng.choice(("${params.list}", "${params.list}", "${params.none}"))}
        step["foreach"]["tolerate"] = rng.choice((0, 1, "50%"))
    elif kind < 0.25:
        step["until"], step["maxRuns"] = "${index >= 2}", rng.choice((1, 5))
    elif kind < 0.3:
        step["while"] = rng.choice(("${index < 2}", "${index < 0}"))
    elif kind < 0.35:
        for field in ("job", "params"):
            step.pop(field, None)
        step["sleep"] = "1s"
        return
    if rng.random() < 0.3:
        step["undo"] = {"job": "u"}
    if rng.random() < 0.15:
        step["ignoreFailure"] = True


def _add_switches(rng: Random, main: list[dict[str, Any]], params: dict[str, Any]) -> None:
    """Let switches choose some of the later steps."""
    for i in rng.sample(range(len(main)), len(main) // 15):
        chosen = [step["name"] for step in main[i + 1 : i + 6] if rng.random() < 0.6]
        if len(chosen) < 2:
            continue
        half = len(chosen) // 2
        params[f"w{i}"] = rng.random() < 0.5
        switch = {"name": f"w{i}", "switch": [{"when": f"${{params.w{i}}}", "then": chosen[:half]}]}
        if rng.random() < 0.7:
            switch["switch"].append({"else": chosen[half:]})
        main.append(switch)


def _handler(rng: Random, field: str, i: int) -> dict[str, Any]:
    step: dict[str, Any] = {"name": f"{field}{i}", "job": "h"}
    if i:
        step["after"] = [f"{field}{i - 1}"]
        step["join"] = rng.choice(("allSuccess", "always"))
    return step
