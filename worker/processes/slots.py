"""Slots of a worker group: each runs one job at a time on a device.

On a machine with GPUs each GPU is a slot for training, and the CPU serves the queue `compute`;
otherwise every slot uses the CPU and serves all queues. A slot sees only its own GPU;
`slots_per_gpu` allows several slots on one GPU.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
from dataclasses import dataclass

from catalog import Queue
from worker.settings import JobSettings, visible_gpus

_COUNT_GPUS = "import torch; print(torch.cuda.device_count())"
_COUNT_SECONDS = 120.0


@dataclass(frozen=True)
class Slot:
    """Capacity of a worker for one running job, on a GPU or the CPU.

    Attributes:
        queues: Queues from which the slot takes jobs.
        gpu: The GPU's name as in `CUDA_VISIBLE_DEVICES`; None for the CPU.
    """

    queues: tuple[Queue, ...]
    gpu: str | None

    def __str__(self) -> str:
        """Returns device and queues of the slot, such as `GPU 0: train`."""
        device = "CPU" if self.gpu is None else f"GPU {self.gpu}"
        return f"{device}: {', '.join(self.queues)}"

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables for the slot's Celery process, overriding the worker's settings."""
        return {"GCVAE_QUEUES": ",".join(self.queues), "CUDA_VISIBLE_DEVICES": self.gpu or ""}


def make_slots(settings: JobSettings, gpus: list[str]) -> list[Slot]:
    """Returns the slots of a machine with these GPUs (names as in `CUDA_VISIBLE_DEVICES`)."""
    queues = settings.queues
    if not gpus or Queue.TRAIN not in queues:
        return [Slot(queues, None)] * settings.cpu_slots
    others = tuple(queue for queue in queues if queue is not Queue.TRAIN)
    on_gpus = [Slot((Queue.TRAIN,), gpu) for gpu in gpus for _ in range(settings.slots_per_gpu)]
    return on_gpus + ([Slot(others, None)] * settings.cpu_slots if others else [])


def find_gpus() -> list[str]:
    """Returns the names of the GPUs for training, as in `CUDA_VISIBLE_DEVICES`.

    Torch counts them in a separate process, because CUDA must not be initialised before this
    process forks.

    Raises:
        subprocess.SubprocessError: The process that counts the GPUs fails.
    """
    named = visible_gpus()
    if named == [] or not _has_driver():
        return []
    command = [sys.executable, "-c", _COUNT_GPUS]
    n_gpus = int(subprocess.check_output(command, text=True, timeout=_COUNT_SECONDS))
    return [str(number) for number in range(n_gpus)] if named is None else named[:n_gpus]


def _has_driver() -> bool:
    """Avoids the slow import of torch."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True
