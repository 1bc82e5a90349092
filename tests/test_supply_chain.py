"""What an image is made of: pinned, held against hashes, under licences that are allowed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
IMAGE = "gcvae-server[postgres,mysql,redis,traces]", "gcvae-client", "hatchling"
OURS = {"gcvae", "gcvae-server", "gcvae-client"}
PIN = re.compile(r"(?m)^([A-Za-z0-9._-]+)==([^\s;]+)")
OF_CUDA = re.compile(r"^(triton|nvidia-|cuda-)")
"""What a CUDA build of torch asks for: the index that it is taken from has it."""


def pins(path: Path) -> dict[str, str]:
    """Versions by name."""
    return {canonicalize_name(name): version for name, version in PIN.findall(path.read_text())}


def asked_for(requirement: Requirement) -> Iterator[Requirement]:
    """What an installed distribution asks for on this machine, with the extras of a requirement."""
    for line in requires(requirement.name) or ():
        asked = Requirement(line)
        extras = requirement.extras or {""}
        is_for_us = asked.marker is None or any(
            asked.marker.evaluate({"extra": extra}) for extra in extras
        )
        if is_for_us and not OF_CUDA.match(asked.name):
            yield asked


def packages_of_an_image() -> set[str]:
    """All that an image's three distributions lead to, as installed here."""
    found: set[str] = set()
    waiting = [Requirement(line) for line in IMAGE]
    seen: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        found.add(canonicalize_name(requirement.name))
        waiting.extend(asked_for(requirement))
    return found


def licences(*arguments: str) -> subprocess.CompletedProcess[str]:
    """pip-licenses on what an image holds."""
    names = [*(packages_of_an_image() - OURS)]
    return subprocess.run(
        [BIN / "pip-licenses", "--from", "mixed", "--packages", *names, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


def test_every_package_of_an_image_but_torch_is_locked_with_hashes() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    blocks = re.split(r"(?m)^(?=[A-Za-z])", lock)[1:]
    assert all("--hash=sha256:" in block for block in blocks)

    missing = packages_of_an_image() - OURS - set(pins(ROOT / "requirements.lock"))

    assert missing <= {"torch"}, "make lock"


def test_locked_versions_are_those_that_were_tested_together() -> None:
    tested = pins(ROOT / "constraints.txt")

    locked = pins(ROOT / "requirements.lock")

    differ = {name for name in locked if name in tested and tested[name] != locked[name]}
    assert not differ, "make lock"
    untested = set(locked) - set(tested)
    assert untested <= for_some_machines(), untested


def for_some_machines() -> set[str]:
    """Locked packages that only some systems, or versions of Python, ask for."""
    lines = re.findall(r"(?m)^([A-Za-z0-9._-]+)==\S+ ;", (ROOT / "requirements.lock").read_text())
    return {canonicalize_name(name) for name in lines}


def test_every_package_of_an_image_has_a_licence_that_is_allowed() -> None:
    done = licences()

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("only", ["BSD", "MIT"])
def test_a_licence_that_is_not_allowed_is_found(only: str) -> None:
    assert licences("--allow-only", only).returncode != 0


def test_the_workflow_is_one_of_the_forge() -> None:
    check = [BIN / "check-jsonschema", "--builtin-schema", "vendor.github-workflows"]
    subprocess.run([*check, *ROOT.glob(".github/workflows/*.yml")], check=True, capture_output=True)
