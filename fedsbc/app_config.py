"""The config of an app that brings its own model and data: only how updates travel counts."""

from typing import Any

from fedsbc.config.load import build
from fedsbc.config.problems import Origin
from fedsbc.config.schema import Config


def app_config(*, clients: int, rounds: int, **sections: Any) -> Config:
    """Return a config for `CompressedStrategy` and `CompressionMod` in an app of one's own.

    The app's model, data and training are its own: what a config says of those is filled with
    values that nobody reads.

    Args:
        clients: number of nodes.
        rounds: number of rounds.
        sections: other keys of a config, such as `upstream={"name": "sbc", "density": 0.001}`,
            `downstream`, `participation`, `aggregation`, `failures`, `seed`.

    Raises:
        ConfigError: a key is unknown, of the wrong type or out of range.
    """
    unread = {"local_steps": 1, "batch_size": 1, "optimizer": {"name": "sgd", "lr": 1.0}}
    tree = {
        "name": "app",
        "data": {"name": "mnist-5k"},
        "model": {"name": "mlp"},
        "clients": {"count": clients, **unread},
        "rounds": rounds,
        "upstream": {"name": "sbc", "density": 0.01},
        **sections,
    }
    return build(tree, Origin("app_config"))
