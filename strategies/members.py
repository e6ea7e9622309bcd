"""Who takes part: the binding of nodes to clients, and what the server knows of each."""

from collections.abc import Sequence
from dataclasses import dataclass

from fedsbc.seeds import Stream, generator


@dataclass
class Member:
    """One client of the run, as the server knows it.

    Attributes:
        client_id: its data partition; all draws and sums go by it.
        node_id: its Flower node in this run; random, and never part of a draw.
        num_samples: number of its training samples.
        base_version: version of the server model that it holds for certain, -1 for none.
        used_round: last round whose update from it was applied, 0 for none.
        discarded_round: last round whose update was refused as bad, 0 for none.
    """

    client_id: int
    node_id: int
    num_samples: int
    base_version: int = -1
    used_round: int = 0
    discarded_round: int = 0


def draw_cohort(client_ids: Sequence[int], size: int, seed: int, round: int) -> list[int]:
    """Return `size` of the clients, sorted, drawn without replacement for a round.

    The draw depends on (seed, round) and the sorted client ids alone.
    """
    draw = generator(seed, Stream.COHORT, round)
    chosen = draw.choice(sorted(client_ids), size=min(size, len(client_ids)), replace=False)
    return sorted(int(client_id) for client_id in chosen)
