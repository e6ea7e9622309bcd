"""The same FedAvg job on the PyPI package `pfl`, for a Python that has it.

torchrun --standalone --nproc-per-node 2 -m runtimes.with_pfl JOB.json
"""

import os
import sys

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.internal.ops import pytorch_ops
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel

from . import task


class Model(torch.nn.Module):
    """The job's model with the two methods that pfl calls."""

    def __init__(self, job: task.Job) -> None:
        super().__init__()
        self.layers = task.module(job)

    def loss(self, x: torch.Tensor, y: torch.Tensor, **_: object) -> torch.Tensor:
        """Return the mean cross entropy of a batch."""
        return torch.nn.functional.cross_entropy(self.layers(x), y)

    def metrics(self, x: torch.Tensor, y: torch.Tensor, **_: object) -> dict[str, object]:
        """Return nothing: the benchmark does not evaluate."""
        return {}


class RoundLog(TrainingProcessCallback):  # type: ignore[misc]  # pfl has no types here
    """Writes the line of a round, once for both processes."""

    def __init__(self, job: task.Job) -> None:
        self._job = job

    def after_central_iteration(
        self, aggregate_metrics: object, model: object, *, central_iteration: int
    ) -> tuple[bool, object]:
        """Note the end of a round."""
        if pytorch_ops.distributed.global_rank == 0:
            task.round_done(self._job)
        return False, Metrics()


def clients_of(job: task.Job) -> object:
    """Return the clients as pfl sees them, their samples in memory."""
    x, y = task.train_set(job)
    rows = task.rows_of_clients(job, len(y))
    users = [Dataset(raw_data=[x[r], y[r]], user_id=str(i)) for i, r in enumerate(rows)]
    sampler = get_user_sampler("minimize_reuse", list(range(job["clients"])))
    return FederatedDataset(users.__getitem__, sampler)


def main() -> None:
    """Play the rounds of a job."""
    job = task.read(sys.argv[1])
    model = Model(job)
    users = clients_of(job)
    FederatedAveraging().run(
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=job["rounds"],
            evaluation_frequency=job["rounds"] + 1,  # pfl evaluates in the first round anyway
            train_cohort_size=job["cohort"],
            val_cohort_size=0,
        ),
        backend=SimulatedBackend(training_data=users, val_data=users),
        model=PyTorchModel(model, torch.optim.SGD, torch.optim.SGD(model.parameters(), 1.0)),
        model_train_params=NNTrainHyperParams(
            local_num_epochs=None,
            local_num_steps=job["local_steps"],
            local_learning_rate=job["lr"],
            local_batch_size=job["batch_size"],
        ),
        model_eval_params=NNEvalHyperParams(local_batch_size=None),
        callbacks=[RoundLog(job)],
    )


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    # One run in three aborts in C++ while the interpreter takes torch apart, after all its rounds.
    os._exit(0)
