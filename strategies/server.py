"""The server's model: its weights, its own residual, and the payloads that lead to it."""

from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from fedsbc.arrays import Vector
from fedsbc.compressors import Compressor, State
from fedsbc.compressors.none import NoneOptions
from fedsbc.errors import RunError
from fedsbc.feedback import compress_with_feedback
from fedsbc.flat_model import model_sha256
from fedsbc.layout import Layout, is_finite
from fedsbc.lossless import lossless_update
from fedsbc.message import MAX_CHAIN, Content
from fedsbc.payload import PayloadBits, decode, encode, measure
from fedsbc.seeds import Stream, generator
from fedsbc.updates import DenseBlock, Update

NO_BITS = PayloadBits(0, 0, 0, 0, 0)


def add_bits(a: PayloadBits, b: PayloadBits) -> PayloadBits:
    """Return the sums of two measurements."""
    return PayloadBits(
        a.num_kept + b.num_kept,
        a.position_bits + b.position_bits,
        a.value_bits + b.value_bits,
        a.header_bits + b.header_bits,
        a.padding_bits + b.padding_bits,
    )


@dataclass(frozen=True)
class Sent:
    """What leads from one version to the next: empty for a round that changed nothing."""

    payload: bytes = b""
    bits: PayloadBits = NO_BITS


@dataclass(frozen=True)
class Downlink:
    """What a client is sent to come to the current version.

    Attributes:
        content: `full` or `payloads`.
        base_version: the payloads start after it; -1 with `full`.
        payload_bytes: lengths of the payloads that travel, by their names.
        bits: what they cost together.
    """

    content: Content
    base_version: int
    payload_bytes: dict[str, int]
    bits: PayloadBits


@dataclass
class Server:
    """The server's side of the model.

    Attributes:
        layout: the parameters.
        buffer_layout: the float buffers.
        weights: float32, shape (d,).
        buffers: float32.
        compressor: the scheme from the server to clients.
        seed: of the run.
        averages_buffers: whether float buffers are averaged and sent with every version; local
            ones are sent with the full model alone, for clients to start from.
        version: rounds that were closed; the model after round t has version t.
        residual: what downstream compression left out; None at first and without it.
        state: the compressor's own.
        history: payload and cost of each recent version; fewer bytes than a full model in all,
            and at most `MAX_CHAIN` of them.
    """

    layout: Layout
    buffer_layout: Layout
    weights: Vector
    buffers: Vector
    compressor: Compressor
    seed: int
    averages_buffers: bool = True
    version: int = 0
    residual: Vector | None = None
    state: State = field(default_factory=dict)
    history: dict[int, Sent] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # What a full model costs depends on the layouts alone, so it is measured once.
        self._full_bits = measure(self.payload("full"), self.layout)
        self._buffer_bits = NO_BITS
        if self.buffer_layout.size:
            self._buffer_bits = measure(self.payload("buffers"), self.buffer_layout)

    def model_hash(self) -> str:
        """Return the sha256 of the current model."""
        return model_sha256(self.weights, self.buffers)

    def sent_hash(self) -> str:
        """Return what requests say of the current model: its hash without local buffers."""
        sent = self.buffers if self.averages_buffers else self.buffers[:0]
        return model_sha256(self.weights, sent)[:16]

    @property
    def sent_buffers(self) -> Layout:
        """The float buffers that clients send; empty where they stay local."""
        return self.buffer_layout if self.averages_buffers else Layout(())

    def close_round(self, round: int, aggregate: Vector | None, buffers: Vector | None) -> bytes:
        """Come to the version of a round: apply what everyone else will decode.

        Args:
            round: the round that closes; becomes the version.
            aggregate: float32, shape (d,), finite; None for an aborted round, which changes
                nothing.
            buffers: averaged float buffers, or None to keep them.

        Returns:
            The payload that leads from the version before to this one; empty for no change.

        Raises:
            RunError: the new weights are not finite; nothing was changed.
            UpdateError: the aggregate and the residual together are not; nothing was changed.
        """
        assert round == self.version + 1, "rounds close one after the other"
        sent = Sent() if aggregate is None else self._apply(round, aggregate)
        if buffers is not None and len(buffers):
            self.buffers = buffers
        self.version = round
        self.history[round] = sent
        self._forget()
        return sent.payload

    def _apply(self, round: int, aggregate: Vector) -> Sent:
        update, residual, state = self._compressed(round, aggregate)
        payload = encode(update)
        weights = self.layout.zeros()
        np.copyto(weights, self.weights)
        with np.errstate(over="ignore", invalid="ignore"):
            decode(payload, self.layout).add_to(weights)
        if not is_finite(weights):
            raise RunError(f"round {round}: the new weights are not finite; they were not applied")
        # A new vector, never the old one in place: a snapshot of the last version may hold that.
        self.weights, self.residual, self.state = weights, residual, state
        return Sent(payload, measure(payload, self.layout))

    def _compressed(self, round: int, aggregate: Vector) -> tuple[Update, Vector | None, State]:
        options = self.compressor.options
        if isinstance(options, NoneOptions) and options.dtype == "float32":
            return lossless_update(aggregate, self.layout), None, {}
        compressed = compress_with_feedback(
            self.compressor,
            aggregate,
            self.residual,
            self.layout,
            self.state or self.compressor.init_state(self.layout),
            generator(self.seed, Stream.COMPRESS_DOWN, round),
        )
        return compressed.update, compressed.residual, compressed.state

    def _forget(self) -> None:
        """Drop the oldest payloads: a chain that is not shorter than a full model is never sent."""
        num_bits = sum(sent.bits.payload_bits for sent in self.history.values())
        while num_bits >= self._full_bits.payload_bits or len(self.history) > MAX_CHAIN:
            num_bits -= self.history.pop(min(self.history)).bits.payload_bits

    def downlink(self, base_version: int) -> Downlink:
        """Return the cheaper of the missed payloads and the full model for a client.

        Args:
            base_version: what the client holds for certain; -1 for nothing.
        """
        buffers, lengths = NO_BITS, {}
        if self.averages_buffers and self.buffer_layout.size:
            buffers, lengths = self._buffer_bits, {"buffers": self._buffer_bits.payload_bits // 8}
        missed = range(base_version + 1, self.version + 1)
        if base_version >= 0 and all(v in self.history for v in missed):
            sent = {v: self.history[v] for v in missed if self.history[v].payload}
            bits = reduce(add_bits, (s.bits for s in sent.values()), NO_BITS)
            if bits.payload_bits < self._full_bits.payload_bits:
                lengths.update({f"v{v}": len(s.payload) for v, s in sent.items()})
                return Downlink("payloads", base_version, lengths, add_bits(bits, buffers))
        return self._whole()

    def _whole(self) -> Downlink:
        """Return the full model, and the float buffers if there are any."""
        bits, lengths = self._full_bits, {"full": self._full_bits.payload_bits // 8}
        if self.buffer_layout.size:
            bits = add_bits(bits, self._buffer_bits)
            lengths["buffers"] = self._buffer_bits.payload_bits // 8
        return Downlink("full", -1, lengths, bits)

    def payload(self, name: str) -> bytes:
        """Return a payload by its name in messages: `full`, `buffers`, or `v3` of version 3."""
        if name == "full":
            return _dense_payload(self.weights, self.layout)
        if name == "buffers":
            return _dense_payload(self.buffers, self.buffer_layout)
        return self.history[int(name[1:])].payload


def _dense_payload(vector: Vector, layout: Layout) -> bytes:
    return encode(Update(layout, [DenseBlock(view) for view in layout.split(vector)]))
