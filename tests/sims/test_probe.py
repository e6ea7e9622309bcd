"""The measurement of what a client takes of a GPU; without one, its parts."""

import subprocess
from types import SimpleNamespace

import pytest
import torch

from fedsbc.config import to_json
from fedsbc.errors import RunError
from sims import probe
from sims.probe import measured_machine, probe_node, train_once
from sims.resources import Machine
from tests.experiments import small

SHAPE = (1, 28, 28)


@pytest.mark.parametrize("scheme", ["{name: sbc, density: 0.01}", "{name: none}", "{name: qsgd}"])
def test_what_it_trains_is_a_client_of_the_run(scheme):
    train_once(to_json(small(f"upstream={scheme}")), SHAPE, "cpu")


def test_what_it_finds_goes_to_the_machine(monkeypatch):
    said = 'a warning\n{"total_bytes": 1000, "client_bytes": 300}\n'
    ended = SimpleNamespace(returncode=0, stdout=said, stderr="")
    monkeypatch.setattr(probe.subprocess, "run", lambda *given, **options: ended)
    machine = measured_machine(Machine(4, 10**9, 1), "{}", SHAPE)
    assert (machine.gpu_bytes, machine.client_gpu_bytes, machine.cores) == (1000, 300, 4)


def test_a_client_that_cannot_be_trained_there_is_one_line(monkeypatch):
    ended = subprocess.CompletedProcess([], 1, "", "Traceback\nOutOfMemoryError: tried 20 GiB\n")
    monkeypatch.setattr(probe.subprocess, "run", lambda *given, **options: ended)
    with pytest.raises(RunError, match="cannot be trained on the GPU: OutOfMemoryError: tried 20"):
        probe_node("{}", SHAPE)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu_it_finds_more_than_the_model():
    found = probe_node(to_json(small()), SHAPE)
    assert 0 < found.client_bytes < found.total_bytes
