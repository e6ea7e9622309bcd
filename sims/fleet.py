"""The sites of a run, and what goes between them: data, weights, clients' states.

Site 0 is the driver's own machine, with or without actors. A run on one machine has no other: then
nothing here goes over the network.
"""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import ray

from fedsbc.arrays import Vector
from fedsbc.checkpoint.states import restore_state
from fedsbc.errors import StatesLost

from . import homes
from .pool import Seat
from .sites import LocalSite, RemoteSite, Site

CHUNK_BYTES = 32 * 2**20
"""Of a file on its way to other nodes: what all of them fetch passes through one object."""

CLIENTS_AT_ONCE = 16
"""States on their way together."""

CLOSE_S = 10.0
"""How long a keeper may take to remove its folder."""

GATHERED = "gathered"
"""Folder of the local site for states of other nodes that a checkpoint is about to take."""


class Fleet:
    """The sites, and which of them is which client's home.

    Args:
        sites: the local one first.
        num_clients: clients 0 to num_clients - 1.
        check: raises when the engine, or a site, is gone; told whether an actor has just died.
    """

    def __init__(
        self, sites: Sequence[Site], num_clients: int, check: Callable[[bool], None]
    ) -> None:
        assert isinstance(sites[0], LocalSite), "the driver's own machine comes first"
        self.sites = list(sites)
        self.check = check
        self._homes = homes.assign(num_clients, [site.num_actors for site in sites])

    @property
    def num_actors(self) -> int:
        """Actors of all sites."""
        return sum(site.num_actors for site in self.sites)

    def home_of(self, client_id: int) -> int:
        """Return the number of a client's site."""
        return self._homes[client_id]

    def seats(self) -> list[Seat]:
        """Return a seat for each actor."""
        return [
            Seat(site.start_actor, number)
            for number, site in enumerate(self.sites)
            for _ in range(site.num_actors)
        ]

    def begin(self, name: str, generation: Path | None) -> None:
        """Start with the states of a checkpoint, or with none, in folders of that name."""
        for site in self.sites:
            site.begin(name)
        if generation is None:
            return
        waiting: list[Future[Any]] = []
        for path in sorted((generation / "clients").iterdir()):
            site = self.sites[self._homes[int(path.stem.partition("-")[2])]]
            if site.is_local:
                restore_state(path, site.states)
            else:
                waiting.append(site.ask("put", [(path.name, path.read_bytes())]))
            if len(waiting) >= CLIENTS_AT_ONCE:
                self._wait(waiting)
        self._wait(waiting)

    def spread(self, names: Iterable[str]) -> None:
        """Copy files of the local site's folder to the other sites."""
        others = [site for site in self.sites if not site.is_local]
        if not others:
            return
        for name in names:
            for start, chunk in _chunks(self.sites[0].root / name):
                content = ray.put(chunk)
                self._wait([site.ask("write", name, start, content) for site in others])

    def publish(self, version: int, weights: Vector, buffers: Vector) -> None:
        """Put the weights of a version into shared memory, once on each site."""
        others = [site for site in self.sites if not site.is_local]
        both = [ray.put(weights), ray.put(buffers)] if others else []
        waiting = [site.ask("publish", version, *both) for site in others]
        self.sites[0].ask("publish", version, weights, buffers)
        self._wait(waiting)

    def settle(self, clients: Sequence[int]) -> None:
        """Move clients of a round to other sites if their own has far too much to do."""
        if len(self.sites) == 1:
            return
        actors = [site.num_actors for site in self.sites]
        trips: dict[tuple[int, int], list[int]] = defaultdict(list)
        for client, target in homes.moves({c: self._homes[c] for c in clients}, actors).items():
            trips[self._homes[client], target].append(client)
        for (origin, target), movers in trips.items():
            for some in _groups(movers):
                (files,) = self._wait([self.sites[origin].ask("take", some)])
                self._wait([self.sites[target].ask("put", files)])
                self._wait([self.sites[origin].ask("drop", some)])
                for client in some:
                    self._homes[client] = target

    def gather(self, run_id: str, before_round: int, known: Mapping[int, int]) -> list[Path]:
        """Bring states of other sites here, and return the folders that hold them.

        Args:
            run_id: of the states.
            before_round: the newest written before this round is meant.
            known: the round of each client's state that need not be brought.
        """
        others = [site for site in self.sites if not site.is_local]
        if not others:
            return []
        local = self.sites[0]
        folder = local.root / GATHERED
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():
            path.unlink()
        lists = self._wait([site.ask("newest", run_id, before_round) for site in others])
        for site, listed in zip(others, lists, strict=True):
            changed = [client for client, round, _ in listed if known.get(client) != round]
            for some in _groups(changed):
                (files,) = self._wait([site.ask("read", run_id, before_round, some)])
                for name, content in files:
                    (folder / name).write_bytes(content)
        return [folder]

    def close(self) -> None:
        """End the keepers of other sites, and remove their folders, if they are still there."""
        for site in self.sites:
            if isinstance(site, RemoteSite):
                with contextlib.suppress(ray.exceptions.RayError, TimeoutError):
                    site.ask("close").result(timeout=CLOSE_S)
                with contextlib.suppress(Exception):  # a cluster that is gone hides no reason
                    ray.kill(site.keeper)

    def _wait(self, waiting: list["Future[Any]"]) -> list[Any]:
        """Return the answers and empty the list.

        Raises:
            StatesLost: a keeper is gone, and the states of its site with it.
        """
        try:
            answers = [future.result() for future in waiting]
        except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError) as error:
            self.check(True)
            raise StatesLost(f"a node's keeper has died ({_last_line(error)})") from error
        finally:
            waiting.clear()
        return answers


def _chunks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield a file in parts, each with its position."""
    with path.open("rb") as file:
        start = 0
        while chunk := file.read(CHUNK_BYTES):
            yield start, chunk
            start += len(chunk)


def _groups(clients: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(clients), CLIENTS_AT_ONCE):
        yield clients[start : start + CLIENTS_AT_ONCE]


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__
