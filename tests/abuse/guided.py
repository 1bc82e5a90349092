"""Inputs that grow along the code they reach: coverage-guided, by atheris (`make test-guided`).

    python -m tests.abuse.guided csv --inputs 20000 [--seed 0] [--kept fuzz-kept]

The other campaign (`tests.abuse.fuzz`) makes inputs by rules and knows nothing of what they do.
Here good ones are changed, and what reaches new code is changed further. An error that is no
refusal ends the run, and so do 30 seconds or 3 GB over one input; the input is kept.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["gcvae", "service"]):
    from gcvae import Synthesizer
    from gcvae.artifact.file import pack_tensors, unpack_tensors
    from gcvae.trial import try_out
    from tests.abuse import inputs

_INPUT_SECONDS = 30
_MEMORY_MIB = 3_000


def read_schema(data: bytes) -> None:
    """A schema document, as text."""
    inputs.read_schema(_document(data))


def read_manifest(data: bytes) -> None:
    """The manifest of a model, as text, signed by whoever forged it."""
    document = _document(data)
    if isinstance(document, dict):
        tensors, _ = unpack_tensors(inputs.model())
        try_out(Synthesizer.from_bytes(pack_tensors(tensors, document)))


def _document(data: bytes) -> object:
    """What JSON there is in it; None where there is none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _manifest() -> bytes:
    return json.dumps(unpack_tensors(inputs.model())[1]).encode()


Reader = Callable[[bytes], None]
SUBJECTS: dict[str, tuple[Reader, Callable[[], list[bytes]]]] = {
    "csv": (inputs.read_csv, lambda: [inputs.GOOD_CSV.encode()]),
    "parquet": (inputs.read_csv, inputs.parquets),
    "schema": (read_schema, lambda: [json.dumps(inputs.SCHEMA).encode()]),
    "json": (
        inputs.read_body,
        lambda: [bytes([n]) + json.dumps(b).encode() for n, (_, b) in enumerate(inputs.BODIES)],
    ),
    "manifest": (read_manifest, lambda: [_manifest()]),
}


def main() -> None:
    """Read so many inputs; atheris ends the process, with 0 where nothing was found."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("subject", choices=[*SUBJECTS])
    asked.add_argument("--inputs", type=int, default=20_000)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--kept", type=Path, default=Path("fuzz-kept"))
    chosen = asked.parse_args()
    read, seeds = SUBJECTS[chosen.subject]

    def read_one(data: bytes) -> None:
        with suppress(*inputs.REFUSALS):
            read(data)

    chosen.kept.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gcvae-corpus-") as corpus:
        for number, seed in enumerate(seeds()):
            (Path(corpus) / str(number)).write_bytes(seed)
        limits = [f"-timeout={_INPUT_SECONDS}", f"-rss_limit_mb={_MEMORY_MIB}", "-max_len=20000"]
        kept = f"-artifact_prefix={chosen.kept}/{chosen.subject}-guided-"
        what = [f"-runs={chosen.inputs}", f"-seed={chosen.seed}", "-print_final_stats=1"]
        atheris.Setup([sys.argv[0], *what, *limits, kept, corpus], read_one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
