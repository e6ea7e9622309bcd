"""The same job as a Flower ClientApp, as Flower's users write one."""

import functools

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from . import task

app = ClientApp()

Parts = tuple[torch.nn.Sequential, tuple[torch.Tensor, torch.Tensor], list[torch.Tensor]]


@functools.cache
def parts_of(path: str) -> tuple[task.Job, Parts]:
    """Return job, model, samples and rows, once per process."""
    job = task.read(path)
    data = task.train_set(job)
    return job, (task.module(job), data, task.rows_of_clients(job, len(data[1])))


@app.train()
def train(message: Message, context: Context) -> Message:
    """Train one client and send its weights."""
    job, (model, data, rows) = parts_of(str(context.run_config["job"]))
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())  # type: ignore[union-attr]
    mine = rows[int(context.node_config["partition-id"])]
    task.train(model, job, *data, mine)
    content = RecordDict(
        {
            "arrays": ArrayRecord(model.state_dict()),
            "metrics": MetricRecord({"num-examples": len(mine)}),
        }
    )
    return Message(content, reply_to=message)
