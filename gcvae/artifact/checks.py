"""What a model file must hold to be used: its checksum says that it is whole, and no more.

A file comes from anywhere. It can declare sizes that no machine holds, weights that do not fit its
own configuration, numbers that are none, and a codec of other columns than its schema's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from gcvae.errors import ArtifactError, GcvaeError

_FACTORIES = (torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.eye)
_SPARE_ELEMENTS = 1 << 24
"""Of tensors that are built beside a model's weights, at most as many as those and these."""
_RECORD: dict[str, Any] = {
    "preset": str,
    "device": str,
    "seed": int,
    "rows": int,
    "bound_held_out": (int, float),
    "settings": Mapping,
    "held_out_scores": Mapping,
}


@contextmanager
def artifact_errors(what: str) -> Iterator[None]:
    """Turns what goes wrong over the content of a file into an ArtifactError.

    Nothing is known of that content before it is used, so any error may be its fault.

    Args:
        what: Is wrong, as a clause.
    """
    try:
        yield
    except (ArtifactError, MemoryError, OSError):
        raise
    except Exception as error:
        said = str(error) if isinstance(error, GcvaeError) else f"{type(error).__name__}: {error}"
        raise ArtifactError(f"{what}: {said.splitlines()[0][:300]}") from error


class Allocation(TorchFunctionMode):
    """While a model is built: it may take no more memory than its file has weights for."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        """Counts what the file holds."""
        super().__init__()
        self._left = 2 * sum(tensor.numel() for tensor in tensors.values()) + _SPARE_ELEMENTS

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Counts the elements of a new tensor before it is made."""
        if func in _FACTORIES:
            self._left -= _n_elements(func, args, kwargs or {})
            if self._left < 0:
                raise ArtifactError("the file declares a larger model than it has weights for")
        return func(*args, **(kwargs or {}))


def _n_elements(factory: Any, args: Any, kwargs: Mapping[str, Any]) -> int:
    if factory is torch.eye:
        sizes = args[:2] if len(args) > 1 else 2 * args[:1]
    else:
        first = args[0] if args else kwargs["size"]
        sizes = args if isinstance(first, int) else first
    return math.prod(map(int, sizes))


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Gives a model the weights of its file.

    Raises:
        ArtifactError: They are not the model's, or one is no number.
    """
    expected = model.state_dict()
    other = sorted(set(expected) ^ set(tensors))
    if other:
        raise ArtifactError(f"the file's weights are not those of its configuration: {other[0]!r}")
    for name, tensor in tensors.items():
        wanted = expected[name]
        if (tensor.shape, tensor.dtype) != (wanted.shape, wanted.dtype):
            raise ArtifactError(
                f"the weights {name!r} are {tuple(tensor.shape)} of {tensor.dtype}, "
                f"and the file's configuration has {tuple(wanted.shape)} of {wanted.dtype}"
            )
        if not bool(torch.isfinite(tensor).all()):
            raise ArtifactError(f"the weights {name!r} hold what is no finite number")
    model.load_state_dict(dict(tensors))


def check_record(record: Mapping[str, Any]) -> None:
    """Lets training records pass that have what is read of them.

    Raises:
        ArtifactError: A member is absent, or of another type.
    """
    if record.get("is_minimal") is True:
        return
    for name, kind in _RECORD.items():
        value = record.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ArtifactError(f"the file's training record has no {name}")
    for name, scores in record["held_out_scores"].items():
        numbers = np.asarray(scores, dtype=np.float64)
        if numbers.ndim != 1 or not len(numbers) or not (np.diff(numbers) >= 0.0).all():
            raise ArtifactError(f"the file's scores {name!r} are no rising numbers")
