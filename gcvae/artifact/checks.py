"""Checks the content of a model file before it is used.

A correct checksum only shows that the file is complete, and the file may come from anybody. It can
declare tensors larger than any memory, weights that do not fit its configuration, NaN or infinite
weights, and a codec whose columns differ from those of its schema.
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
"""Number of tensor elements that constructing a model may allocate beyond twice those of its
weights."""
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
    """Context manager that converts the exceptions of a block of code, which uses the content of a
    file, to ArtifactError.

    Unchecked content can cause an exception of any class. MemoryError and OSError are not
    converted.

    Args:
        what: The failure, as the first clause of the error's message.

    Raises:
        ArtifactError: The block raised an exception; its message follows `what`.
    """
    try:
        yield
    except (ArtifactError, MemoryError, OSError):
        raise
    except Exception as error:
        said = str(error) if isinstance(error, GcvaeError) else f"{type(error).__name__}: {error}"
        raise ArtifactError(f"{what}: {said.splitlines()[0][:300]}") from error


class Allocation(TorchFunctionMode):
    """Context manager that limits the memory allocated while a model is constructed from a file.

    The limit is a number of tensor elements: twice that of the file's weights, plus 2^24. It stops
    a file whose configuration declares a model much larger than its weights.

    Raises:
        ArtifactError: The tensors that factories such as `torch.zeros` create have more elements
            than the limit permits.
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        """Computes the limit from the weights in the file, by name."""
        super().__init__()
        self._left = 2 * sum(tensor.numel() for tensor in tensors.values()) + _SPARE_ELEMENTS

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Counts the elements of a new tensor before torch allocates it.

        Raises:
            ArtifactError: The new tensor and those before it exceed the limit.
        """
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
    """Loads the weights of a file, by name, into a model that was constructed from its
    configuration.

    Raises:
        ArtifactError: Names, shapes or dtypes differ from the model's, or a weight is NaN or
            infinite.
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
    """Checks that the training record of a model file contains all required members.

    A minimal file, which has no record of the training table, is not checked.

    Raises:
        ArtifactError: A member is missing or has the wrong type, or held-out scores are not sorted
            in ascending order.
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
