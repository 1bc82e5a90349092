"""The Kubernetes manifests are valid, and say what the compose file says. No cluster runs here."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.test_deployment import COMPOSE, REDIS, SERVICES

ROOT = Path(__file__).parents[1]
BASE = ROOT / "deploy" / "kubernetes" / "base"
VERSIONS = ("1.30", "1.37")
KUSTOMIZATION = yaml.safe_load((BASE / "kustomization.yaml").read_text())
RESOURCES: list[dict[str, Any]] = [
    resource
    for name in KUSTOMIZATION["resources"]
    for resource in yaml.safe_load_all((BASE / name).read_text())
]
PODS = {
    resource["metadata"]["name"]: resource["spec"]["template"]["spec"]
    for resource in RESOURCES
    if resource["kind"] in ("Deployment", "StatefulSet", "Job")
}
OURS = ("migrate", "service", "worker-train", "worker-compute")


def containers() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every server's name with its container."""
    for name, pod in PODS.items():
        [container] = pod["containers"]
        yield name, container


def environment(name: str) -> dict[str, str]:
    """The environment of one of our servers, from the settings of all and its own."""
    lines = (BASE / "settings.env").read_text().splitlines()
    shared = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    own = dict(containers())[name].get("env", [])
    return shared | {entry["name"]: entry["value"] for entry in own}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_resource_follows_the_published_schema(version: str) -> None:
    assert len(RESOURCES) == 15
    for resource in RESOURCES:
        kubernetes_validate.validate(resource, version, strict=True)


@pytest.mark.parametrize("name", ["base", "gpu"])
def test_the_manifests_can_be_built(name: str) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl, which builds the manifests, is not installed")
    built = subprocess.run(
        ["kubectl", "kustomize", str(BASE.parent / name)], check=True, capture_output=True
    )
    resources = list(yaml.safe_load_all(built.stdout))
    for resource in resources:
        kubernetes_validate.validate(resource, VERSIONS[-1], strict=True)
        assert "gcvae" in (resource["metadata"].get("namespace"), resource["metadata"]["name"])
    limits = {
        resource["metadata"]["name"]: resource["spec"]["template"]["spec"]["containers"][0][
            "resources"
        ]["limits"]
        for resource in resources
        if resource["kind"] == "Deployment"
    }
    with_gpu = [server for server, most in limits.items() if "nvidia.com/gpu" in most]
    assert with_gpu == (["worker-train"] if name == "gpu" else [])


def test_the_servers_are_those_of_the_compose_file() -> None:
    elsewhere = {"proxy", "prometheus", "grafana", "worker-train-cpu"}
    assert set(PODS) == set(SERVICES) - elsewhere
    for name, container in containers():
        assert container["image"] == SERVICES[name]["image"]
        limits = container["resources"]["limits"]
        told = SERVICES[name]["deploy"]["resources"]["limits"]["memory"].strip("${}")
        assert limits["memory"].removesuffix("i").lower() == told.rpartition(":-")[2].lower()
        assert set(container["resources"]["requests"]) == set(limits) == {"cpu", "memory"}


@pytest.mark.parametrize("name", OURS)
def test_our_servers_have_the_environment_of_the_compose_file(name: str) -> None:
    assert environment(name) == SERVICES[name]["environment"]


def test_secrets_are_those_of_the_compose_file() -> None:
    for name, pod in PODS.items():
        [volume] = [found["secret"] for found in pod["volumes"] if "secret" in found]
        assert volume["secretName"] == "gcvae-secrets"
        items = [item["key"] for item in volume.get("items", ())]
        assert items == ([] if name in OURS else SERVICES[name]["secrets"])
    files = {value for name in OURS for value in environment(name).values() if "/secrets/" in value}
    assert {Path(value).name for value in files} < set(COMPOSE["secrets"])


def test_our_servers_run_without_rights() -> None:
    for name, container in containers():
        pod = PODS[name]
        assert pod["automountServiceAccountToken"] is False
        if name in OURS:
            assert pod["securityContext"]["runAsNonRoot"]
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_servers_that_stay_are_probed() -> None:
    for name, container in containers():
        assert ("livenessProbe" in container) == (name != "migrate")
    assert dict(containers())["service"]["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_redis_has_the_same_settings() -> None:
    assert (BASE / "redis.conf").read_text() == REDIS
