"""How many actors fit, on which device, and what is said where they do not."""

from dataclasses import replace

import pytest

from fedsbc.errors import ConfigError
from sims.engine import gpu_share
from sims.resources import Machine, describe_fit, device_of, fit_actors, share_out
from tests.experiments import small

GIB = 2**30
CPU = Machine(cores=8, memory_bytes=64 * GIB, gpus=0)
GPU = replace(CPU, gpus=1, gpu_bytes=16 * GIB, client_gpu_bytes=2 * GIB)
QUARTER = "engine.gpus_per_actor=0.25"


@pytest.mark.parametrize(
    ("machine", "settings", "device"),
    [
        (CPU, (), "cpu"),
        (CPU, (QUARTER,), "cpu"),
        (GPU, (), "cpu"),
        (GPU, (QUARTER,), "cuda"),
        (GPU, (QUARTER, "engine.device=cpu"), "cpu"),
        (GPU, (QUARTER, "engine.device=cuda"), "cuda"),
    ],
)
def test_auto_takes_a_gpu_where_an_actor_holds_one(machine, settings, device):
    config = small(*settings)
    assert device_of(config, [machine]) == device
    assert fit_actors(config, [machine], device) == [4 if device == "cuda" else 8]


@pytest.mark.parametrize(
    ("settings", "machines", "said"),
    [
        ((QUARTER,), [CPU], "no CUDA device here; use engine.device: auto"),
        ((QUARTER,), [CPU, CPU], "no CUDA device on any of 2 nodes"),
        ((), [GPU], "engine.gpus_per_actor is 0: actors hold no GPU"),
    ],
)
def test_cuda_that_cannot_be_had_is_one_clear_line(settings, machines, said):
    with pytest.raises(ConfigError, match=said):
        device_of(small("engine.device=cuda", *settings), machines)


def test_memory_of_the_gpu_bounds_the_actors_and_is_shown():
    config = small("engine.gpus_per_actor=0.1")
    assert fit_actors(config, [GPU], "cuda") == [6], "0.75 x 16 GiB / 2 GiB"
    asked = small("engine.gpus_per_actor=0.1", "engine.actors=8")
    with pytest.raises(ConfigError) as error:
        fit_actors(asked, [GPU], "cuda")
    assert "8 asked for, but 6 fit: 12 GiB of memory on each GPU (1)" in str(error.value)
    assert "/ 2 each (measured) = 6" in str(error.value)


def test_a_client_that_is_too_large_for_the_gpu_is_refused_before_it_runs_out():
    large = replace(GPU, client_gpu_bytes=14 * GIB)
    with pytest.raises(ConfigError, match="not one actor fits: 12 GiB of memory on each GPU"):
        fit_actors(small("engine.gpus_per_actor=1"), [large], "cuda")


def test_a_share_is_of_one_gpu_not_of_all():
    # 0.4 of a GPU: two on each, though five times 0.4 are two GPUs
    two = replace(GPU, gpus=2)
    assert fit_actors(small("engine.gpus_per_actor=0.4"), [two], "cuda") == [4]
    assert gpu_share(two, 4) == 0.5
    assert gpu_share(CPU, 3) == pytest.approx(1 / 3)


def test_each_node_is_counted_by_itself():
    nodes = [replace(CPU, cores=n, name=f"on 10.0.0.{n}") for n in (1, 3)]
    assert fit_actors(small("engine.cpus_per_actor=2"), nodes, "cpu") == [0, 1]
    assert fit_actors(small(), nodes, "cpu") == [1, 3]
    assert fit_actors(small("engine.actors=2"), nodes, "cpu") == [0, 2]
    said = describe_fit(small(), nodes, "cpu", [1, 3])
    assert said == "4 actors on CPUs (auto; 1 on 10.0.0.1, 3 on 10.0.0.3, 8 clients a round)"
    with pytest.raises(ConfigError) as error:
        fit_actors(small("engine.actors=5"), nodes, "cpu")
    assert "5 asked for, but 4 fit: 1 CPU cores on 10.0.0.1 / 1 each" in str(error.value)
    assert "; 3 CPU cores on 10.0.0.3" in str(error.value)


def test_after_a_loss_what_fits_is_taken():
    assert fit_actors(small("engine.actors=12"), [CPU], "cpu", at_most=True) == [8]
    with pytest.raises(ConfigError, match="12 asked for, but 8 fit"):
        fit_actors(small("engine.actors=12"), [CPU], "cpu")


def test_share_out():
    assert share_out(5, [1, 4]) == [1, 4]
    assert share_out(3, [0, 8, 8]) == [0, 2, 1]


def test_a_share_of_a_gpu_that_is_not_there_is_said():
    said = describe_fit(small(QUARTER), [CPU], "cpu", [8])
    assert "on CPUs (there is no GPU: engine.gpus_per_actor counts for nothing)" in said
