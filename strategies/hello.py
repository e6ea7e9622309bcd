"""The first exchange: which node is which client, and what state it found."""

import time
from collections.abc import Iterable, Mapping

from flwr.app import Message, MessageType
from flwr.serverapp import Grid

from fedsbc.config import Config
from fedsbc.errors import RunError, WireError
from fedsbc.experiment import experiment_hash
from fedsbc.layout import Layout
from fedsbc.ledger import Ledger
from fedsbc.message import Hello, HelloReply, content_bytes, pack, unpack

from .exchange import Exchange
from .members import Member
from .rows import ledger_row
from .server import NO_BITS

MAX_NAMED = 20
"""Clients that a line names; of more it says how many."""

WAIT_FOR_NODES_S = 60.0
"""Nodes of a deployment join one after the other."""


def wait_for_nodes(grid: Grid, count: int, timeout_s: float) -> list[int]:
    """Return the node ids once there are `count` of them.

    Raises:
        RunError: there are more, or fewer after the time is up.
    """
    deadline = time.monotonic() + timeout_s
    nodes = sorted(grid.get_node_ids())
    if len(nodes) < count:
        print(f"waiting for nodes: {len(nodes)} of {count} are there", flush=True)
    while len(nodes) < count and time.monotonic() < deadline:
        time.sleep(0.2)
        nodes = sorted(grid.get_node_ids())
    if len(nodes) != count:
        raise RunError(
            f"{len(nodes)} nodes are connected, but the config has clients.count: {count}; "
            f"start as many nodes (flwr run: --federation-config num-supernodes={count}), "
            "or set clients.count"
        )
    return nodes


def say_hello(
    exchange: Exchange,
    config: Config,
    layout: Layout,
    run_id: str,
    incarnation: int,
    ledger: Ledger,
) -> dict[int, Member]:
    """Ask every node who it is, and bind it to its client for the run.

    Raises:
        RunError: a node does not answer, has another config or model, or claims a client id
            that another node has.
    """
    timeout_s = min(WAIT_FOR_NODES_S, config.failures.client_timeout_s)
    nodes = wait_for_nodes(exchange.grid, config.clients.count, timeout_s)
    hello = pack(Hello(run_id, incarnation, experiment_hash(config)))
    requests = [Message(hello, node, MessageType.QUERY, group_id="0") for node in nodes]
    replies: list[tuple[int, Message]] = []
    silent = exchange.run(
        requests, lambda request, reply: replies.append((request.metadata.dst_node_id, reply))
    )
    if silent:
        raise RunError(f"hello: {len(silent)} of {len(nodes)} nodes gave no answer: {silent[0][1]}")
    members = _bind(replies, content_bytes(hello), layout, ledger)
    for client_id in range(config.clients.count):
        if client_id not in members:
            raise RunError(
                f"no node is client {client_id}: the nodes' partition-ids are to be 0 to "
                f"{config.clients.count - 1}, each once"
            )
    return members


def empty_clients(members: Mapping[int, Member]) -> str | None:
    """Say which clients have no samples, None if all have some: they train nothing."""
    empty = [str(member.client_id) for member in members.values() if member.num_samples == 0]
    if not empty:
        return None
    more = "" if len(empty) <= MAX_NAMED else ", ..."
    return (
        f"{len(empty)} of {len(members)} clients have no samples and train nothing: "
        f"{', '.join(empty[:MAX_NAMED])}{more}"
    )


def _bind(
    replies: Iterable[tuple[int, Message]], down_bytes: int, layout: Layout, ledger: Ledger
) -> dict[int, Member]:
    members: dict[int, Member] = {}
    for node_id, message in replies:
        reply = _hello_reply(message)
        if reply.layout != layout.hash:
            raise RunError(
                f"client {reply.client_id} has another model (layout {reply.layout}) than the "
                f"server ({layout.hash})"
            )
        if reply.client_id < 0 or reply.num_samples < 0 or reply.base_version < -1:
            raise RunError(f"hello: a node's answer is not ours: {reply}")
        if reply.client_id in members:
            raise RunError(f"two nodes claim client {reply.client_id}: give each its partition-id")
        members[reply.client_id] = Member(
            reply.client_id, node_id, reply.num_samples, reply.base_version
        )
        up_bytes = content_bytes(message.content)
        for direction, size in (("down", down_bytes), ("up", up_bytes)):
            ledger.add(
                ledger_row(
                    round=0,
                    client_id=reply.client_id,
                    direction=direction,  # type: ignore[arg-type]  # a literal of the tuple
                    kind="hello",
                    bits=NO_BITS,
                    envelope_bytes=size,
                    num_params=layout.size,
                )
            )
    return dict(sorted(members.items()))


def _hello_reply(message: Message) -> HelloReply:
    if message.has_error():
        reason = (message.error.reason or f"error {message.error.code}").strip()
        raise RunError(f"hello: a client failed: {reason.splitlines()[-1]}")
    try:
        return unpack(message.content, HelloReply)[0]
    except WireError as error:
        raise RunError(f"hello: a node's answer is not ours: {error}") from error
