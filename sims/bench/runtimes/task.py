"""What every rival trains: models, data, clients, and the line at the end of a round.

It needs torch and numpy alone: a rival may live in an environment that has no fedsbc. The job is
a JSON object: `model`, `clients`, `cohort`, `local_steps`, `batch_size`, `lr`, `rounds`,
`workers`, `data` (path of a .npz) and `log` (path of a file that gets a line per round).
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

Job = dict[str, Any]


def read(path: str) -> Job:
    """Return the job in a file, and keep torch to one thread."""
    torch.set_num_threads(1)
    job: Job = json.loads(Path(path).read_text())
    return job


def module(job: Job) -> nn.Sequential:
    """Return the job's model; the layers are those of `fedsbc.models`."""
    torch.manual_seed(0)
    if job["model"] == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    return nn.Sequential(
        nn.Conv2d(1, 20, 5),
        nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(800, 500),
        nn.ReLU(),
        nn.Linear(500, 10),
    )


def train_set(job: Job) -> tuple[torch.Tensor, torch.Tensor]:
    """Return normalised images, float32, shape (N, 1, 28, 28), and labels, int64, shape (N,)."""
    with np.load(job["data"]) as file:
        x, y = file["x_train"], file["y_train"]
    images = torch.from_numpy(x[:, None].astype(np.float32))
    return images.div_(255).sub_(0.5).div_(0.5), torch.from_numpy(y.astype(np.int64))


def rows_of_clients(job: Job, num_samples: int) -> list[torch.Tensor]:
    """Return the rows of each client: a random split into equal parts."""
    order = np.random.default_rng(0).permutation(num_samples)
    return [torch.from_numpy(part) for part in np.array_split(order, job["clients"])]


def cohort(job: Job, round: int) -> list[int]:
    """Return the clients of a round."""
    draw = np.random.default_rng((1, round))
    return [int(c) for c in draw.permutation(job["clients"])[: job["cohort"]]]


def train(model: nn.Module, job: Job, x: torch.Tensor, y: torch.Tensor, rows: torch.Tensor) -> None:
    """Take the local steps of one client: plain eager SGD, in place."""
    parameters = list(model.parameters())
    batch, lr = job["batch_size"], job["lr"]
    for step in range(job["local_steps"]):
        start = step * batch % max(1, len(rows) - batch + 1)
        chosen = rows[start : start + batch]
        loss = nn.functional.cross_entropy(model(x[chosen]), y[chosen])
        loss.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            for parameter in parameters:
                parameter.add_(parameter.grad, alpha=-lr)  # type: ignore[arg-type]
                parameter.grad = None


def round_done(job: Job) -> None:
    """Write the line of a round."""
    with open(job["log"], "a") as file:
        file.write("round\n")
