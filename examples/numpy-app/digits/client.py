"""The client: trains on digits of its own."""

from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from clients.mod import CompressionMod
from digits.compression import CONFIG
from digits.model import initial_parameters, samples, train


def as_arrays(parameters):
    return ArrayRecord({name: Array(value) for name, value in parameters.items()})


mod = CompressionMod(CONFIG, lambda: as_arrays(initial_parameters()))
app = ClientApp(mods=[mod])
mod.answer_queries(app)


@app.train()
def fit(message: Message, context: Context) -> Message:
    parameters = {name: array.numpy() for name, array in message.content["arrays"].items()}
    images, labels = samples(seed=context.node_config["partition-id"])
    trained, loss = train(parameters, images, labels)
    metrics = MetricRecord({"train-loss": loss, "num-examples": len(labels)})
    content = RecordDict({"arrays": as_arrays(trained), "metrics": metrics})
    return Message(content, reply_to=message)
