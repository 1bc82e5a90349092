"""The images and the compose file hold together, as far as can be seen without an engine."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.access import refuse_open_address
from service.settings import ServiceSettings

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
DOCKERFILE = (ROOT / "Dockerfile").read_text()
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
OURS = ("service", "worker", "migrate")


def stages() -> dict[str, str]:
    """The Dockerfile's build stages: name to text."""
    parts = re.split(r"(?m)^FROM \S+ AS (\S+)\n", DOCKERFILE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def copied_paths() -> list[str]:
    """What the Dockerfile takes from the checkout."""
    lines = re.findall(r"(?m)^COPY (?!--from)(.*)$", DOCKERFILE)
    return [source for line in lines for source in line.split()[:-1]]


def test_the_compose_file_follows_the_compose_specification() -> None:
    check = [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec"]
    subprocess.run([*check, ROOT / "docker-compose.yml"], check=True, capture_output=True)


def test_the_dockerfile_passes_hadolint() -> None:
    done = subprocess.run([BIN / "hadolint", ROOT / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", OURS)
def test_every_build_target_of_the_compose_file_is_a_stage_of_the_dockerfile(name: str) -> None:
    assert SERVICES[name]["build"]["target"] in stages()


def test_every_stage_that_is_copied_from_exists() -> None:
    assert set(re.findall(r"--from=(\S+)", DOCKERFILE)) <= set(stages())


def test_every_copied_path_exists_and_reaches_the_builder() -> None:
    let_through = (ROOT / ".dockerignore").read_text().splitlines()
    for path in copied_paths():
        assert (ROOT / path).exists(), path
        assert f"!{path.removeprefix('./')}" in let_through, path


def test_the_images_hold_every_package_of_the_distribution() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert {package.split(".")[0] for package in declared["packages"]} <= set(copied_paths())


@pytest.mark.parametrize("target", ["service", "worker"])
def test_an_image_runs_without_root_and_can_be_asked_for_its_health(target: str) -> None:
    stage = stages()[target]
    assert re.search(r"(?m)^USER (?!root\b|0\b)\S+$", stage)
    assert "HEALTHCHECK" in stage
    assert "CMD" in stage


def test_every_image_names_its_version() -> None:
    images = re.findall(r"(?m)^FROM (\S+:\S+) AS", DOCKERFILE)
    images += [service["image"] for service in SERVICES.values() if "build" not in service]
    assert images
    for image in images:
        assert re.search(r":v?\d+\.\d+", image), f"{image} names no version"


def test_every_server_that_others_wait_for_has_a_health_check() -> None:
    for service in SERVICES.values():
        for name, wait in service.get("depends_on", {}).items():
            if wait["condition"] == "service_healthy":
                assert "test" in SERVICES[name]["healthcheck"]


def test_the_queue_survives_a_restart_and_throws_nothing_out() -> None:
    command = SERVICES["redis"]["command"]
    assert command[command.index("--appendonly") + 1] == "yes"
    assert command[command.index("--maxmemory-policy") + 1] == "noeviction"
    assert SERVICES["redis"]["volumes"]


def test_service_worker_and_migration_share_the_three_urls() -> None:
    for name in OURS:
        environment = SERVICES[name]["environment"]
        assert environment["GCVAE_DATABASE_URL"].startswith("postgresql://")
        assert environment["GCVAE_BROKER_URL"].startswith("redis://")
        assert environment["GCVAE_STORE_URL"].startswith("s3://")


def test_only_the_service_is_published_and_only_on_the_loopback_address() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert list(published) == ["service"]
    assert all(port.startswith("127.0.0.1:") for port in published["service"])


def test_no_password_is_written_down() -> None:
    for service in SERVICES.values():
        for key, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|ACCESS_KEY", key):
                assert value.startswith("${"), key


def test_the_service_may_listen_inside_its_container() -> None:
    environment = SERVICES["service"]["environment"]
    trusted = environment["GCVAE_TRUSTED_NETWORK"]
    assert '"--host", "0.0.0.0"' in stages()["service"]
    refuse_open_address(ServiceSettings(host="0.0.0.0", trusted_network=trusted))
