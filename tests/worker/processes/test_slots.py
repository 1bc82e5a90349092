"""Slots of a machine, and what each is told to see."""

from __future__ import annotations

import ctypes
import subprocess

import pytest

from catalog import Queue
from worker.processes.slots import Slot, find_gpus, make_slots
from worker.settings import JobSettings

_TRAIN, _COMPUTE = Queue.TRAIN, Queue.COMPUTE


def test_without_a_gpu_every_slot_serves_every_queue_on_the_cpu() -> None:
    slots = make_slots(JobSettings(cpu_slots=2), [])
    assert slots == [Slot((_TRAIN, _COMPUTE), None)] * 2
    assert slots[0].variables == {"GCVAE_QUEUES": "train,compute", "CUDA_VISIBLE_DEVICES": ""}


def test_each_gpu_is_a_slot_for_training_and_the_cpu_computes() -> None:
    slots = make_slots(JobSettings(), ["0", "GPU-8a1b"])
    assert slots == [Slot((_TRAIN,), "0"), Slot((_TRAIN,), "GPU-8a1b"), Slot((_COMPUTE,), None)]
    assert [slot.variables["CUDA_VISIBLE_DEVICES"] for slot in slots] == ["0", "GPU-8a1b", ""]


def test_a_card_is_shared_only_where_the_setting_says_so() -> None:
    slots = make_slots(JobSettings(slots_per_gpu=2, queues="train"), ["0", "1"])  # type: ignore[arg-type]
    assert [slot.gpu for slot in slots] == ["0", "0", "1", "1"]


def test_a_worker_that_does_not_train_takes_no_gpu() -> None:
    slots = make_slots(JobSettings(queues="compute", cpu_slots=3), ["0"])  # type: ignore[arg-type]
    assert slots == [Slot((_COMPUTE,), None)] * 3


@pytest.mark.parametrize("named", ["", "-1", "-1,0"])
def test_a_machine_whose_gpus_are_hidden_has_none(
    monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert find_gpus() == []


@pytest.mark.parametrize(
    ("named", "expected"), [(None, ["0", "1"]), ("3,GPU-8a1b,7", ["3", "GPU-8a1b"])]
)
def test_the_gpus_are_those_that_torch_counts_by_the_names_that_cuda_knows(
    monkeypatch: pytest.MonkeyPatch, named: str | None, expected: list[str]
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if named is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    # This machine may have neither driver nor card: only the two questions are answered for it.
    monkeypatch.setattr(ctypes, "CDLL", lambda name: None)
    monkeypatch.setattr(subprocess, "check_output", lambda *_, **__: "2\n")
    assert find_gpus() == expected


def test_a_queue_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'train' or 'compute'"):
        JobSettings(queues="gpu")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no queue is given; choose from train, compute"):
        JobSettings(queues=" , ")  # type: ignore[arg-type]
