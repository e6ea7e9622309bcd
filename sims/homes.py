"""Which node keeps which client: homes that are balanced, that stay, and that move when they must.

Sites are numbered; `actors` says how many actors each one has. None of this changes a byte of a
run: any actor gives the same reply from the same state.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

LIMIT = 1.5
"""Times its share of a round that a site may have to do before clients move away."""


def assign(num_clients: int, actors: Sequence[int]) -> list[int]:
    """Return the site of each client: in turn, so that each actor has as many clients as any.

    >>> assign(5, [2, 1])
    [0, 1, 0, 0, 1]
    """
    turns = [(turn, site) for site, count in enumerate(actors) for turn in _spread(count)]
    seats = [site for _, site in sorted(turns)]
    assert seats, "at least one actor"
    return [seats[client_id % len(seats)] for client_id in range(num_clients)]


def _spread(count: int) -> list[float]:
    """Return instants in (0, 1), evenly apart."""
    return [(turn + 0.5) / count for turn in range(count)]


def moves(homes: Mapping[int, int], actors: Sequence[int]) -> dict[int, int]:
    """Return the clients of a round that should move, with their new sites; mostly nobody.

    A state costs a trip over the network, and an uneven round a little waiting: clients move only
    where a site has more than `LIMIT` times its share to do and one client per actor beyond it, and
    then to where they are further from too many. No site ends with more than one beyond its share.

    Args:
        homes: the site of each client of the round.
        actors: number of actors of each site.
    """
    load = Counter(homes.values())
    shares = [len(homes) * count / sum(actors) for count in actors]
    if all(load[site] <= LIMIT * shares[site] + count for site, count in enumerate(actors)):
        return {}
    found: dict[int, int] = {}
    for client_id in sorted(homes):
        origin = homes[client_id]
        target = min(range(len(actors)), key=lambda site: load[site] - shares[site])
        if load[target] + 1 - shares[target] < load[origin] - shares[origin]:
            load[origin] -= 1
            load[target] += 1
            found[client_id] = target
    return found
