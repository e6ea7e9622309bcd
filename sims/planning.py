"""How long a run will take: its rounds played again without training, with expected bits.

Cohorts, links and who is there are those of the run itself, drawn from the same seed; so is what
each client missed since it was last asked, and with that its downlink. Only the bits of payloads
are expected values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fedsbc import availability
from fedsbc.compressors import SparseOptions
from fedsbc.config import Config
from fedsbc.errors import ConfigError
from fedsbc.network import build, late_clients, round_seconds
from strategies.members import draw_cohort

from .plan_payloads import Payloads

TERMS = ("latency", "down", "steps", "coding", "up")
"""The parts of a client's seconds, those of `fedsbc.network.client_seconds`."""


@dataclass(frozen=True)
class Prediction:
    """What a run is expected to take.

    Attributes:
        local_steps: between two exchanges.
        density: of the upstream scheme; None where it has none.
        num_rounds: of the run.
        seconds: of all rounds.
        terms: mean seconds of the slowest client of a round, by `TERMS`.
        up_bits: of one reply.
        down_bits: of one request, on average.
        num_at_deadline: rounds that the deadline ended.
        is_measured: whether a finished run said how many rounds there are.
    """

    local_steps: float
    density: float | None
    num_rounds: int
    seconds: float
    terms: tuple[float, ...]
    up_bits: float
    down_bits: float
    num_at_deadline: int
    is_measured: bool = False


@dataclass(frozen=True)
class _Played:
    """One round: its seconds, those of its slowest client by `TERMS`, and the downlinks."""

    seconds: float
    terms: Sequence[float]
    down_bits: Sequence[float]
    is_at_deadline: bool


class _Replay:
    """The rounds of a run without training."""

    def __init__(self, config: Config, expected: Payloads, steps: Mapping[int, int]) -> None:
        self._config, self._expected, self._steps = config, expected, steps
        count = config.clients.count
        self._network = build(config.network, config.seed, count)
        self._there = availability.build(config.availability, config.seed, count)
        self._last: dict[int, int] = {}

    def play(self, round: int) -> _Played:
        """Play one round after the other."""
        config, deadline_s = self._config, self._network.deadline_s
        present = self._there.present(round)
        cohort = draw_cohort(present, config.cohort_size, config.seed, round)
        down_bits = {i: _down_bits(self._expected, round, self._last.get(i)) for i in cohort}
        gone = self._there.dropouts(round)
        terms = {i: self._terms(i, down_bits[i]) for i in cohort if i not in gone}
        needed_s = {i: sum(parts) for i, parts in terms.items()}
        late = set(late_clients(needed_s, deadline_s))
        self._last.update({i: round for i in needed_s if i not in late})
        slowest = max(needed_s, key=needed_s.__getitem__, default=None)
        is_at_deadline = deadline_s is not None and len(needed_s) - len(late) < len(cohort)
        return _Played(
            seconds=deadline_s or 0.0 if is_at_deadline else round_seconds(needed_s, deadline_s),
            terms=[0.0] * len(TERMS) if slowest is None else terms[slowest],
            down_bits=list(down_bits.values()),
            is_at_deadline=is_at_deadline,
        )

    def _terms(self, client_id: int, down_bits: float) -> Sequence[float]:
        """Return the parts of `client_seconds` of a client, by `TERMS`."""
        link, expected = self._network.links[client_id], self._expected
        return (
            2 * link.latency_s,
            down_bits / link.downlink_bit_s,
            self._steps[client_id] * link.seconds_per_step,
            expected.num_entries * link.coding_ns_per_entry * 1e-9,
            expected.up_bits / link.uplink_bit_s,
        )


def predict(
    config: Config, expected: Payloads, num_rounds: int, steps: Mapping[int, int]
) -> Prediction:
    """Play the rounds of a run without training.

    Args:
        config: of the run; its network is one that takes time.
        expected: its payloads.
        num_rounds: of the run.
        steps: local steps of a round, by client id.
    """
    replay = _Replay(config, expected, steps)
    rounds = [replay.play(round) for round in range(1, num_rounds + 1)]
    down_bits = [bits for played in rounds for bits in played.down_bits]
    upstream = config.upstream
    return Prediction(
        local_steps=sum(steps.values()) / len(steps),
        density=upstream.density if isinstance(upstream, SparseOptions) else None,
        num_rounds=num_rounds,
        seconds=sum(played.seconds for played in rounds),
        terms=tuple(
            sum(part) / num_rounds for part in zip(*(p.terms for p in rounds), strict=True)
        ),
        up_bits=expected.up_bits,
        down_bits=sum(down_bits) / max(1, len(down_bits)),
        num_at_deadline=sum(played.is_at_deadline for played in rounds),
    )


def _down_bits(expected: Payloads, round: int, last_round: int | None) -> float:
    """Return the downlink of a client that last answered in a round: the cheaper of the two."""
    full = expected.full.payload_bits
    missed = full if last_round is None else (round - last_round) * expected.down.payload_bits
    return min(missed, full) + expected.buffer_bits


def steps_of(config: Config) -> dict[int, int]:
    """Return the local steps of each client in a round.

    Raises:
        FedsbcError: they are epochs, and the data cannot be had.
    """
    clients = config.clients
    if clients.local_steps is not None:
        return dict.fromkeys(range(clients.count), clients.local_steps)
    from fedsbc import data
    from fedsbc.data import partition
    from fedsbc.training.batches import num_batches

    assert clients.local_epochs is not None, "the config was checked"
    labels = data.load(config.data).y_train
    parts = partition.split(config.data.partition, labels, clients.count, config.seed)
    batches = [num_batches(len(part), clients.batch_size, join_single=False) for part in parts]
    return {client_id: clients.local_epochs * count for client_id, count in enumerate(batches)}


def with_point(config: Config, local_steps: int | None, density: float | None) -> Config:
    """Return the config with other local steps and another density upstream.

    Args:
        config: the one to change.
        local_steps: None: as they are.
        density: None: as it is.

    Raises:
        ConfigError: the scheme has no density.
    """
    if local_steps is not None:
        steps = {"local_steps": local_steps, "local_epochs": None}
        clients = config.clients.model_copy(update=steps)
        config = config.model_copy(update={"clients": clients})
    if density is None:
        return config
    if not isinstance(config.upstream, SparseOptions):
        raise ConfigError(f"upstream: `{config.upstream.name}` has no density to plan with")
    upstream = config.upstream.model_copy(update={"density": density})
    return config.model_copy(update={"upstream": upstream})
