"""Dashboard and alerts ask for figures that exist; the page of operations explains each alert."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from catalog import Catalog, upgrade
from service.metrics import Metrics
from worker.processes.metrics import WorkerMetrics

ROOT = Path(__file__).parents[1]
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "gcvae.json").read_text())
GROUPS = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text())["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]
PROMETHEUS = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The figures that API and worker tell, each with its labels."""
    url = f"sqlite:///{tmp_path_factory.mktemp('figures')}/catalog.db"
    upgrade(url)
    catalog = Catalog(url)
    api = Metrics(catalog.statistics)
    api.answered("GET", "/healthz", 200, 0.1)
    found: dict[str, set[str]] = {"up": set()}
    for registry in (api.registry, WorkerMetrics().registry):
        for family in registry.collect():
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
    catalog.close()
    return found


def queries() -> Iterator[str]:
    """Every query of the dashboard and the alerts."""
    for panel in PANELS:
        yield from (target["expr"] for target in panel["targets"])
    yield from (rule["expr"] for rule in RULES)


_WORD = r"[a-z_][a-z0-9_]*"
_FUNCTIONS = {
    "absent", "and", "by", "histogram_quantile", "increase", "max", "rate", "sum", "time",
}  # fmt: skip


def figures_in(query: str) -> set[str]:
    """The names of the figures that a query asks for."""
    bare = re.sub(r'"[^"]*"', '""', query)
    bare = re.sub(r"\bby \([^)]*\)", "", bare)
    bare = re.sub(r"\{[^}]*\}|\[\w+\]", "", bare)
    return set(re.findall(rf"(?<![\d.\w]){_WORD}", bare)) - _FUNCTIONS


def labels_in(query: str) -> set[str]:
    """The labels that a query selects or groups by."""
    selected = set(re.findall(r'(\w+)(?:=~|!=|!~|=)"', query))
    grouped = {
        label for found in re.findall(r"\bby \(([^)]*)\)", query) for label in found.split(", ")
    }
    return selected | grouped


@pytest.mark.parametrize("query", sorted(set(queries())))
def test_a_query_asks_for_figures_and_labels_that_exist(
    query: str, told: dict[str, set[str]]
) -> None:
    asked = figures_in(query)
    assert asked <= set(told), asked - set(told)
    assert asked or query.startswith("time()")
    known = {"job", "instance"}.union(*(told[name] for name in asked))
    assert labels_in(query) <= known, labels_in(query) - known


def test_a_query_is_understood_whole() -> None:
    query = 'max by (a, b) (rate(x_total{c="d(e)"}[5m])) > 0.2 * time() - y_1'
    assert figures_in(query) == {"x_total", "y_1"}
    assert labels_in(query) == {"a", "b", "c"}


def test_every_figure_of_ours_is_on_the_dashboard(told: dict[str, set[str]]) -> None:
    shown = set().union(*map(figures_in, queries()))
    families = {
        re.sub(r"_(total|bucket|count|sum|created)$", "", name)
        for name in told
        if name.startswith("gcvae_")
    }
    assert {f for f in families if not any(name.startswith(f) for name in shown)} == set()


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Prometheus's promtool")
def test_the_alerts_sound_when_they_should() -> None:
    rules = ROOT / "deploy" / "prometheus" / "alerts.test.yml"
    done = subprocess.run(["promtool", "test", "rules", rules], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_panels_have_places_of_their_own() -> None:
    places = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not places & cells, panel["title"]
        places |= cells
    assert max(x for x, _ in places) < 24
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_the_page_of_operations_says_of_each_alert_what_to_do() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    section = page.split("## Alerts", 1)[1].split("\n## ", 1)[0]
    explained = re.findall(r"(?m)^\|`(\w+)`\|", section)
    assert explained == [rule["alert"] for rule in RULES]


def test_prometheus_looks_where_the_servers_are() -> None:
    for job in PROMETHEUS["scrape_configs"]:
        [found] = job["dns_sd_configs"]
        assert set(found["names"]) <= set(SERVICES)
        for name in found["names"]:
            port = SERVICES[name]["environment"].get("GCVAE_METRICS_PORT", "8000")
            assert str(found["port"]) == port
