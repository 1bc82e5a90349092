"""Devices on which models are trained."""

from __future__ import annotations

import torch

from gcvae.errors import SettingError


def device_named(name: str) -> torch.device:
    """Returns the device with this name; `auto` is CUDA if available, otherwise the CPU.

    Raises:
        SettingError: The name is not `auto`, `cpu` or `cuda`, or CUDA is not available.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        raise SettingError(f"unknown device {name!r}; expected auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise SettingError("device is cuda, but this machine offers none; expected auto or cpu")
    return torch.device(name)
