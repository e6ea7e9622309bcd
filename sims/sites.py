"""A site: one node as the driver sees it, with its actors and its keeper.

The driver's own machine is a `LocalSite`: its keeper is an object of this process, its files are
read and written directly. Other nodes are `RemoteSite`s, whose keeper is a Ray actor there.
"""

import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol

from fedsbc.partition_files import PARTITION

from .actor import NodeConfig
from .counter import STARTING, Counter
from .keeper import Keeper

PROGRESS_EVERY_S = 1.0
"""How often a remote node is asked how far its actors are."""

MakeActor = Callable[[NodeConfig, Path], Any]
"""Starts an actor with its node config, and the file for its progress."""


class Progress(Protocol):
    """How many messages an actor has handled, or `STARTING`."""

    @property
    def value(self) -> int:
        """The number."""


class Site(ABC):
    """A node of the run.

    Attributes:
        name: for people.
        num_actors: how many actors run there.
        is_local: whether it is the driver's own machine.
        states: folder of the clients' states and the server's weights, there.
    """

    is_local: bool

    def __init__(self, name: str, num_actors: int, root: Path, make_actor: MakeActor) -> None:
        self.name, self.num_actors, self.root = name, num_actors, root
        self.states = root
        self._make_actor = make_actor
        # A file of its own for each actor: one that is being killed may still write to its own.
        self._names = (f"actor-{number}.count" for number in itertools.count())

    @abstractmethod
    def ask(self, method: str, *arguments: Any) -> "Future[Any]":
        """Call a method of the keeper."""

    @abstractmethod
    def progress(self, name: str) -> Progress:
        """Return the progress of an actor that is about to start."""

    def begin(self, name: str) -> None:
        """Start with no states, in a folder of that name."""
        self.states = Path(self.ask("begin", name).result())

    def start_actor(self) -> tuple[Progress, Any]:
        """Start an actor there."""
        name = next(self._names)
        node_config: NodeConfig = {
            "partition-file": str(self.root / PARTITION),
            "data-dir": str(self.root),
            "state-dir": str(self.states),
        }
        return self.progress(name), self._make_actor(node_config, self.states / name)


class LocalSite(Site):
    """The driver's own machine."""

    is_local = True

    def __init__(self, num_actors: int, root: Path, make_actor: MakeActor) -> None:
        super().__init__("this machine", num_actors, root, make_actor)
        self.keeper = Keeper(root)

    def ask(self, method: str, *arguments: Any) -> "Future[Any]":
        """Call a method of the keeper, here and now."""
        done: Future[Any] = Future()
        done.set_result(getattr(self.keeper, method)(*arguments))
        return done

    def progress(self, name: str) -> Progress:
        """Return the mapped counter."""
        return Counter(self.states / name, STARTING)


class RemoteSite(Site):
    """Another node.

    Args:
        name: for people.
        num_actors: how many actors run there.
        root: the keeper's folder.
        make_actor: starts an actor there.
        keeper: handle of the node's keeper.
    """

    is_local = False

    def __init__(
        self, name: str, num_actors: int, root: Path, make_actor: MakeActor, keeper: Any
    ) -> None:
        super().__init__(name, num_actors, root, make_actor)
        self.keeper = keeper
        self._numbers: dict[str, int] = {}
        self._asked: Future[Any] | None = None
        self._asked_at = 0.0

    def ask(self, method: str, *arguments: Any) -> "Future[Any]":
        """Call a method of the keeper over the network."""
        answer: Future[Any] = getattr(self.keeper, method).remote(*arguments).future()
        return answer

    def progress(self, name: str) -> Progress:
        """Return the progress as it was when the node was asked last."""
        self._numbers[name] = STARTING
        return _Remembered(self, name)

    def number_of(self, name: str) -> int:
        """Return a counter; a node that does not answer is somebody else's concern."""
        if self._asked is not None and self._asked.done():
            if self._asked.exception() is None:
                self._numbers.update(self._asked.result())
            self._asked = None
        if self._asked is None and time.monotonic() - self._asked_at > PROGRESS_EVERY_S:
            self._asked = self.ask("progress", list(self._numbers))
            self._asked_at = time.monotonic()
        return self._numbers[name]


class _Remembered:
    """An actor's progress on another node."""

    def __init__(self, site: RemoteSite, name: str) -> None:
        self._site, self._name = site, name

    @property
    def value(self) -> int:
        """The number of messages that it had handled a moment ago."""
        return self._site.number_of(self._name)
