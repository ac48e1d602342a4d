import runpy

import numpy as np
import pytest
import torch

from common.errors import TrainingError
from trainer import devices
from trainer.config import NEEDS_GPU
from trainer.distributed import ranks


def test_a_machine_without_gpus_and_a_rank_that_needs_one_fail_with_one_line(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr("sys.argv", ["devices", "8"])
    with pytest.raises(SystemExit, match="0 of this machine's 8 GPUs"):
        runpy.run_path(devices.__file__, run_name="__main__")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv(NEEDS_GPU, "1")
    with pytest.raises(TrainingError, match="cannot use this machine's GPUs"), ranks.join_process_group(1):
        pass


def test_a_listed_gpu_that_does_not_compute_is_named(monkeypatch, messages):
    def ones(_count, device):
        if device == "cuda:1":
            raise RuntimeError("CUDA error: an illegal access\nand more")
        return torch.zeros(1)

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch, "ones", ones)
    with messages.raises(TrainingError):
        devices.require(2)


def test_arrays_go_to_a_device_from_pinned_memory(monkeypatch):
    pinned: list[torch.Tensor] = []
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda own: pinned.append(own) or own)
    array = np.arange(3)
    assert devices.copy_to_device(array, torch.device("meta")).device.type == "meta"
    assert [each.tolist() for each in pinned] == [[0, 1, 2]]
    assert devices.copy_to_device(array, torch.device("cpu")).data_ptr() == array.ctypes.data
    assert len(pinned) == 1
