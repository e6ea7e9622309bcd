"""Rounds of clusters that we do not have: our own homes and cohorts, and seconds by arithmetic.

    python -m tests.benchmarks.scaling_simulated --client-ms 50 --driver-ms 0.5 --mbytes 1.7

Cohorts are drawn and homes are assigned by the run's own code; nobody trains. Per round:

    train    the busiest node's clients x client-ms / its actors
    driver   participants x driver-ms: making requests, reading replies, decoding, adding
    weights  nodes x the model's bytes / the driver's bandwidth
    moves    states that change their node, twice the model's bytes each, over the same link

Training and the driver's work overlap; the line takes the longer one, and adds the other two.
"""

import argparse
import math
from collections import Counter
from statistics import mean

from sims.homes import assign, moves
from strategies.members import draw_cohort

NODES = (1, 2, 10, 100)
CLIENTS = (400, 10_000, 100_000)
SHARES = (0.01, 0.1)
ROUNDS = 5


def simulate(clients: int, cohort: int, actors: list[int], rounds: int) -> tuple[float, float]:
    """Return the busiest actor's clients in a round, and the moves; means over rounds."""
    homes = dict(enumerate(assign(clients, actors)))
    busiest, moved = [], []
    for round in range(1, rounds + 1):
        drawn = draw_cohort(range(clients), cohort, seed=0, round=round)
        trips = moves({client: homes[client] for client in drawn}, actors)
        homes |= trips
        load = Counter(homes[client] for client in drawn)
        busiest.append(max(math.ceil(load[site] / count) for site, count in enumerate(actors)))
        moved.append(len(trips))
    return mean(busiest), mean(moved)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client-ms", type=float, required=True, help="one client on one actor")
    parser.add_argument("--driver-ms", type=float, required=True, help="one reply at the driver")
    parser.add_argument("--mbytes", type=float, required=True, help="the model, in 10^6 bytes")
    parser.add_argument("--actors", type=int, default=8, help="of each node")
    parser.add_argument("--gbit", type=float, default=10.0, help="bandwidth of the driver's link")
    given = parser.parse_args()
    bytes_per_s = given.gbit * 1e9 / 8
    columns = ("clients", "in a round", "nodes", "actors", "busiest actor's clients", "moves")
    print(f"| {' | '.join([*columns, 's a round', 'bound by'])} |")
    print("|---" * 8 + "|")
    for clients in CLIENTS:
        for cohort in sorted({max(40, round(share * clients)) for share in SHARES}):
            for nodes in NODES:
                actors = [given.actors] * nodes
                busiest, moved = simulate(clients, cohort, actors, ROUNDS)
                train_s = busiest * given.client_ms / 1000
                driver_s = cohort * given.driver_ms / 1000
                sent = nodes * given.mbytes * 1e6 * (nodes > 1) + moved * 2 * given.mbytes * 1e6
                seconds = max(train_s, driver_s) + sent / bytes_per_s
                bound = "training" if train_s >= driver_s else "the driver"
                print(
                    f"| {clients:,} | {cohort:,} | {nodes} | {sum(actors)} | {busiest:.1f} "
                    f"| {moved:.0f} | {seconds:.2f} | {bound} |"
                )


if __name__ == "__main__":
    main()
