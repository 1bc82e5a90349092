"""Adam with decoupled weight decay, by torch's functional `adamw`.

`torch.optim.AdamW` computes the same, but imports torch's compiler, which takes one to two seconds
in every process that fits a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.optim.adamw import adamw

_LEAST_DEVIATION = 1e-8


class AdamW:
    """Adam optimiser with decoupled weight decay, which stores the moments of the gradients.

    Source: Kingma & Ba 2015, Algorithm 1; Loshchilov & Hutter 2019, Algorithm 2.
    """

    def __init__(
        self, parameters: Sequence[Tensor], betas: tuple[float, float], weight_decay: float
    ) -> None:
        """Initialises the moments with zeros.

        Args:
            parameters: Parameters to update.
            betas: Decay rates per step of the mean gradient and of the mean squared gradient.
            weight_decay: A step multiplies parameters by 1 - step size * weight_decay.
        """
        self._parameters, self._betas, self._weight_decay = list(parameters), betas, weight_decay
        self._means = [torch.zeros_like(p) for p in self._parameters]
        self._squares = [torch.zeros_like(p) for p in self._parameters]
        self._steps = [torch.zeros((), device=p.device) for p in self._parameters]

    def forget_gradients(self) -> None:
        """Sets the gradients of all parameters to None."""
        for parameter in self._parameters:
            parameter.grad = None

    def step(self, rate: float) -> None:
        """Updates all parameters whose gradient is not None, with step size `rate`."""
        moved = [i for i, p in enumerate(self._parameters) if p.grad is not None]
        gradients = [p.grad for p in self._parameters if p.grad is not None]
        parts = self._parameters, self._means, self._squares, self._steps
        parameters, means, squares, steps = ([part[i] for i in moved] for part in parts)
        with torch.no_grad():
            adamw(
                parameters, gradients, means, squares, [], steps,
                fused=True, amsgrad=False, maximize=False,
                beta1=self._betas[0], beta2=self._betas[1],
                lr=rate, weight_decay=self._weight_decay, eps=_LEAST_DEVIATION,
            )  # fmt: skip

    def to_tensors(self) -> dict[str, Tensor]:
        """Returns moments and step counts by name, for a checkpoint, without copying."""
        return {
            f"{i}/{name}": tensor
            for name, tensors in self._named.items()
            for i, tensor in enumerate(tensors)
        }

    def take_tensors(self, kept: Mapping[str, Tensor]) -> None:
        """Copies moments and step counts from tensors that `to_tensors` returned."""
        for name, tensors in self._named.items():
            for i, tensor in enumerate(tensors):
                tensor.copy_(kept[f"{i}/{name}"])

    @property
    def _named(self) -> dict[str, list[Tensor]]:
        return {"means": self._means, "squares": self._squares, "steps": self._steps}
