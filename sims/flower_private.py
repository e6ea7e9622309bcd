"""The one file that touches Flower's private parts; tested with Flower 1.42.

A message that is made outside a Flower process needs an identity to be made from, and a Grid
gives messages their ids: Flower's own grids write both the same way.
"""

from uuid import uuid4

from flwr.app import Message
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

__all__ = ["RUN_ID", "SERVER_NODE_ID", "Run", "give_id", "identify_server"]

RUN_ID, SERVER_NODE_ID, TASK_ID = 1, 1, 1


def identify_server() -> None:
    """Give this process the identity from which `Message` takes run, node and task."""
    TaskIdentity.run_id = RUN_ID
    TaskIdentity.node_id = SERVER_NODE_ID
    TaskIdentity.task_id = TASK_ID


def give_id(message: Message) -> str:
    """Give a message a fresh id and return it; replies refer to it."""
    message_id = str(uuid4())
    message.metadata.__dict__["_message_id"] = message_id
    return message_id
