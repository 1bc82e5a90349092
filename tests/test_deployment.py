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

from catalog.access.keys import KEY_FORM
from catalog.settings import CatalogSettings
from models_store.settings import StoreSettings
from runtime.settings import USUAL, RuntimeSettings, variable
from service.access import refuse_open_address
from service.errors import StartError
from service.settings import ServiceSettings
from tests.wordings import refuses
from worker.settings import JobSettings

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
REDIS = (ROOT / "deploy" / "redis.conf").read_text()
DOCKERFILE = (ROOT / "Dockerfile").read_text()
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
WORKERS = ("worker-train", "worker-train-cpu", "worker-compute")
OURS = ("service", "migrate", *WORKERS)
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SETTINGS = (ServiceSettings, CatalogSettings, StoreSettings, JobSettings, RuntimeSettings)
EXAMPLE = (ROOT / ".env.example").read_text()


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


def test_the_images_hold_every_package_of_the_three_distributions() -> None:
    library, server = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
        for folder in (".", "server")
    )
    packages = library["targets"]["wheel"]["packages"]
    packages += server["targets"]["wheel"]["hooks"]["custom"]["packages"]
    assert {*packages, "gcvae_client", "server"} <= set(copied_paths())
    installed = stages()["build"].split("pip install")[-1].split()
    assert installed[-3:] == [".", "'./server[postgres,mysql,redis,traces]'", "./gcvae_client"]


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
                built = SERVICES[name].get("build", {}).get("target")
                own = SERVICES[name].get("healthcheck", {})
                assert "test" in own or "HEALTHCHECK" in stages()[built]


def test_the_queue_survives_a_restart_and_throws_nothing_out() -> None:
    told = dict(line.split() for line in REDIS.splitlines() if not line.startswith("#"))
    assert (told["appendonly"], told["maxmemory-policy"]) == ("yes", "noeviction")
    assert [volume for volume in SERVICES["redis"]["volumes"] if volume.endswith(f":{told['dir']}")]
    assert "/etc/gcvae/redis.conf" in SERVICES["redis"]["command"][-1]


def test_service_worker_and_migration_share_the_three_urls() -> None:
    for name in OURS:
        environment = SERVICES[name]["environment"]
        assert environment["GCVAE_DATABASE_URL"].startswith("postgresql://")
        assert environment["GCVAE_BROKER_URL"].startswith("redis://")
        assert environment["GCVAE_STORE_URL"].startswith("s3://")


def test_only_proxy_and_dashboard_are_published_and_only_on_the_loopback_address() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert list(published) == ["proxy", "grafana"]
    assert all(port.startswith("127.0.0.1:") for ports in published.values() for port in ports)


def test_secrets_are_files_and_nothing_has_a_default() -> None:
    for service in SERVICES.values():
        for key, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|ACCESS_KEY", key):
                assert re.fullmatch(r".*_FILE", key), key
                assert value.removeprefix("/run/secrets/") in service["secrets"]
    for name, secret in COMPOSE["secrets"].items():
        assert secret == {"file": f"${{SECRETS_DIR:-./secrets}}/{name}"}


def test_a_service_is_given_every_secret_that_it_reads() -> None:
    read_by_file = {"prometheus": (ROOT / "deploy/prometheus/prometheus.yml").read_text()}
    for name, service in SERVICES.items():
        text = str(service) + read_by_file.get(name, "")
        assert set(re.findall(r"/run/secrets/(\w+)", text)) == set(service.get("secrets", ()))


def test_make_secrets_writes_each_secret_once(tmp_path: Path) -> None:
    make = ["make", "-C", str(ROOT), "secrets", f"SECRETS_DIR={tmp_path}/new"]
    subprocess.run(make, check=True, capture_output=True)
    made = {path.name: path.read_text() for path in (tmp_path / "new").iterdir()}
    assert set(made) == set(COMPOSE["secrets"])
    assert KEY_FORM.fullmatch(made["api_key"])
    passwords = [secret for name, secret in made.items() if name != "api_key"]
    assert all(re.fullmatch(r"[0-9a-f]{48}", secret) for secret in passwords)
    subprocess.run(make, check=True, capture_output=True)
    assert {path.name: path.read_text() for path in (tmp_path / "new").iterdir()} == made


def test_every_server_has_limits_logs_that_end_and_a_restart() -> None:
    for name, service in SERVICES.items():
        limits = service["deploy"]["resources"]["limits"]
        assert set(limits) == {"cpus", "memory"}, name
        assert service["logging"]["options"]["max-size"], name
        assert service["restart"] == ("no" if name == "migrate" else "unless-stopped"), name


def test_training_reserves_a_gpu_and_everything_else_does_without() -> None:
    reserved = {
        name: service["deploy"]["resources"]["reservations"]["devices"]
        for name, service in SERVICES.items()
        if "reservations" in service["deploy"]["resources"]
    }
    assert list(reserved) == ["worker-train"]
    assert reserved["worker-train"][0]["capabilities"] == ["gpu"]
    assert SERVICES["worker-train"]["profiles"] == ["gpu"]
    assert SERVICES["worker-train-cpu"]["profiles"] == ["cpu"]
    assert "profiles" not in SERVICES["worker-compute"]
    queues = {name: SERVICES[name]["environment"]["GCVAE_QUEUES"] for name in WORKERS}
    assert queues == {
        "worker-train": "train", "worker-train-cpu": "train", "worker-compute": "compute",
    }  # fmt: skip


def test_what_the_compose_file_tells_our_servers_are_settings() -> None:
    known = {variable(field) for settings in SETTINGS for field in settings.model_fields}
    for name in OURS:
        told = [key for key in SERVICES[name]["environment"] if key.startswith("GCVAE_")]
        assert {key.removesuffix("_FILE") for key in told} <= known


def test_the_files_that_servers_are_given_exist() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in COMPOSE["volumes"] or (ROOT / source).exists(), volume


def example() -> dict[str, str]:
    """The variables of `.env.example` with their defaults."""
    return dict(re.findall(r"(?m)^#([A-Z]\w+)=(.*)$", EXAMPLE))


def test_the_example_says_of_each_variable_what_it_does_and_its_unit() -> None:
    described = re.findall(r"(?m)^## \S.* \[.+\]\n#([A-Z]\w+)=", EXAMPLE)
    assert described == list(example())
    assert len(set(described)) == len(described)


def test_the_example_holds_every_setting_and_no_other_with_its_default() -> None:
    ours = {name: value for name, value in example().items() if name.startswith("GCVAE_")}
    fields = {variable(field) for settings in SETTINGS for field in settings.model_fields}
    assert fields == set(ours)
    told = {name: value for name, value in ours.items() if value}
    for settings in SETTINGS:
        with pytest.MonkeyPatch.context() as environment:
            for name in ours:
                environment.delenv(name, raising=False)
            for name in ("GCVAE_DATABASE_URL", "GCVAE_BROKER_URL", "GCVAE_STORE_URL"):
                if settings is not ServiceSettings:
                    environment.setenv(name, "file:///srv/x")
            plain = settings()  # type: ignore[call-arg]
            for name, value in told.items():
                environment.setenv(name, value)
            assert settings() == plain  # type: ignore[call-arg]


def test_the_example_has_the_settings_that_people_set_before_those_for_experts() -> None:
    usual, expert = (
        set(re.findall(r"(?m)^#(GCVAE_\w+)=", part)) for part in EXAMPLE.split("# ==== For experts")
    )
    marked: dict[str, set[bool]] = {}
    for settings in SETTINGS:
        for name, field in settings.model_fields.items():
            marked.setdefault(variable(name), set()).add(USUAL in field.metadata)
    assert [name for name, marks in marked.items() if len(marks) > 1] == []
    assert usual == {name for name, marks in marked.items() if marks == {True}}
    assert len(usual) == 23
    assert expert == set(marked) - usual


def test_the_example_holds_every_variable_of_the_compose_file_and_no_other_with_its_default() -> (
    None
):
    text = (ROOT / "docker-compose.yml").read_text()
    used = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", text))
    theirs = {name: value for name, value in example().items() if not name.startswith("GCVAE_")}
    assert theirs.pop("COMPOSE_PROFILES") == "gpu"
    assert theirs == used
    assert not re.findall(r"\$\{\w+[^:\w]", text), "every variable has a default"


@pytest.mark.slow
def test_the_service_may_listen_inside_its_container_once_the_first_key_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `migrate` says of keys makes one of the file of secrets, as often as it is said."""
    assert '"--host", "0.0.0.0"' in stages()["service"]
    said = SERVICES["migrate"]["command"][-1].split(";")[1].split()
    subprocess.run(["make", "-C", str(ROOT), "secrets", f"SECRETS_DIR={tmp_path}/made"], check=True)
    said[said.index("/run/secrets/api_key")] = f"{tmp_path}/made/api_key"
    settings = ServiceSettings(host="0.0.0.0", home_dir=tmp_path / "data")
    with refuses(StartError):
        refuse_open_address(settings)
    monkeypatch.setenv("GCVAE_HOME_DIR", str(tmp_path / "data"))
    for _ in range(2):
        subprocess.run([sys.executable, "-m", "gcvae_cli", *said[1:]], check=True, cwd=ROOT)
    refuse_open_address(settings)
