"""The bare loop: two processes that train half of a cohort each and exchange summed changes.

No framework, no messages, no compression, no state: what a simulator is measured against.

    python -m runtimes.bare JOB.json
"""

import sys
from multiprocessing import get_context
from multiprocessing.connection import Connection

import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from . import task


def work(
    pipe: Connection,
    job: task.Job,
    data: tuple[torch.Tensor, torch.Tensor],
    parts: list[torch.Tensor],
    weights: torch.Tensor,
    total: torch.Tensor,
) -> None:
    """Train the clients that are asked for, and leave the sum of their changes in `total`."""
    torch.set_num_threads(1)
    model = task.module(job)
    parameters = list(model.parameters())
    for clients in iter(pipe.recv, None):
        total.zero_()
        for client in clients:
            with torch.no_grad():
                vector_to_parameters(weights.clone(), parameters)
            task.train(model, job, *data, parts[client])
            total += parameters_to_vector(parameters).detach()
        total.sub_(weights, alpha=len(clients))
        pipe.send(True)


def main() -> None:
    """Play the rounds of a job."""
    job = task.read(sys.argv[1])
    data = task.train_set(job)
    parts = task.rows_of_clients(job, len(data[1]))
    weights = parameters_to_vector(task.module(job).parameters()).detach()
    weights.share_memory_()  # type: ignore[no-untyped-call]
    totals = [torch.zeros_like(weights) for _ in range(job["workers"])]
    for total in totals:
        total.share_memory_()  # type: ignore[no-untyped-call]
    context = get_context("fork")
    pipes = []
    for total in totals:
        pipe, theirs = context.Pipe()
        arguments = (theirs, job, data, parts, weights, total)
        context.Process(target=work, args=arguments, daemon=True).start()
        pipes.append(pipe)
    for round in range(1, job["rounds"] + 1):
        clients = task.cohort(job, round)
        for number, pipe in enumerate(pipes):
            pipe.send(clients[number :: len(pipes)])
        for pipe in pipes:
            pipe.recv()
        weights += sum(totals) / len(clients)
        task.round_done(job)
    for pipe in pipes:
        pipe.send(None)


if __name__ == "__main__":
    main()
