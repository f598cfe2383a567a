"""The dashboard and the alert rules of deploy/ load, and use only metrics that a server has."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from horae.engine.server_node import ServerNode
from horae.server.app import Application
from tests.server.conftest import Api
from tests.server.promql import asked_for
from tests.server.working import HandWorker

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana" / "horae.json").read_text())
RULES = yaml.safe_load((DEPLOY / "prometheus" / "rules.yml").read_text())
SCRAPE = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
PROMETHEUS = {"up": {"job", "instance"}}  # added by Prometheus itself
TARGET = {"instance", "job"}
SEVERITIES = ("critical", "warning", "info")


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expressions() -> dict[str, list[str]]:
    """Return the expressions of panels and rules, by name, with Grafana's variables filled in."""
    asked = {panel["title"]: [_filled(target["expr"]) for target in panel["targets"]] for panel in panels()}
    return asked | {rule["alert"]: [rule["expr"]] for rule in rules()}


def _filled(expression: str) -> str:
    return re.sub(r"\$(server|namespace)\b", ".*", expression.replace("$__rate_interval", "1m"))


def rules() -> list[dict[str, Any]]:
    return [rule for group in RULES["groups"] for rule in group["rules"]]


def labels_of(registry: CollectorRegistry) -> dict[str, set[str]]:
    """Return the labels of each family, including families without values."""
    families = [family for collector in registry._collector_to_names for family in collector.collect()]
    return {family.name: set(getattr(family, "_labelnames", ())) for family in families}


async def test_every_queried_metric_exists_on_a_used_server(api: Api, worker: Api, node: ServerNode, app: Application):
    await api.put("/api/v1/queues/default", json={"concurrency": 3})
    await api.post("/api/v1/jobs", json={"name": "pay", "command": "true"})
    await api.post("/api/v1/executions", json={"job": "pay"})
    hand = await HandWorker.register(worker)
    await hand.report(await hand.take())
    await api.post("/api/v1/queues/default/hold", json={"for": "1h"})
    await api.post("/api/v1/executions", json={"job": "pay"})
    families = list(text_string_to_metric_families((await api.get("/metrics")).text))
    own = labels_of(app.metrics.registry)
    told = dict(PROMETHEUS)
    for family in families:
        told[family.name] = told[f"{family.name}_total"] = own[family.name] | TARGET
        for sample in family.samples:
            told[sample.name] = told.get(sample.name, own[family.name]) | set(sample.labels) | TARGET

    for name, asked in expressions().items():
        for metric, labels in (each for expression in asked for each in asked_for(expression).items()):
            assert metric in told, f"{name} asks for {metric}"
            assert labels <= told[metric], f"{name} asks {metric} for {labels - told[metric]}"
    used = {metric for asked in expressions().values() for one in asked for metric in asked_for(one)}
    seen = {sample.name for family in families for sample in family.samples}
    always = {"horae_ended_executions_total", "horae_limit_used", "horae_held_queues", "horae_worker_slots"}
    assert always <= used & seen


def test_the_dashboard_has_what_an_import_needs():
    assert (DASHBOARD["id"], DASHBOARD["uid"], DASHBOARD["title"]) == (None, "horae", "Horae")
    assert DASHBOARD["schemaVersion"] >= 36
    assert {"type": "datasource", "name": "datasource"}.items() <= DASHBOARD["templating"]["list"][0].items()
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in panels():
        assert {"type", "title", "description", "gridPos", "targets", "fieldConfig", "options"} <= panel.keys()
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        refs = [target["refId"] for target in panel["targets"]]
        assert len(set(refs)) == len(refs)
    variables = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    named = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD)))
    assert named - {"__rate_interval", "__all"} == variables


def test_panels_that_may_be_empty_say_so():
    may_be_none = ("horae_circuits", "horae_alerts", "horae_held_queues", "horae_limit_used")
    for panel in panels():
        if any(metric in target["expr"] for target in panel["targets"] for metric in may_be_none):
            assert panel["fieldConfig"]["defaults"]["noValue"] == "none", panel["title"]


def test_no_two_panels_overlap():
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_a_rule_has_what_prometheus_and_people_need(rule: dict[str, Any]):
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in SEVERITIES
    assert re.fullmatch(r"\d+[smhd]", rule.get("for", "0s"))
    assert set(rule["annotations"]) == {"summary", "description"}
    (expression,) = expressions()[rule["alert"]]
    labels = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
    known = set().union(*asked_for(expression).values()) | TARGET
    assert labels <= known


def test_the_sample_scrape_configuration_loads_these_rules_and_uses_a_key():
    assert SCRAPE["rule_files"] == ["rules.yml"]
    (scrape,) = SCRAPE["scrape_configs"]
    assert scrape["job_name"] == "horae"
    assert scrape["authorization"]["credentials_file"]
