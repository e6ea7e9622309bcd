"""Book-keeping of a run: where every client's changes went, in float64 and by the test alone."""

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from fedsbc.config import Config
from fedsbc.message import ARRAYS, FIELDS
from fedsbc.payload import decode
from fedsbc.state_files import FileHome
from fedsbc.state_slot import Slot
from tests.experiments import Notes, play
from tests.local_grid import FIRST_NODE, LocalGrid, SharingGrid

LAST = 10**6


class Books:
    """Plays a run in which messages get lost, and can say afterwards where every change went.

    Args:
        config: the run.
        folder: for states and records.
        fates: probability of each fate of a reply: `drop-request`, `drop-reply`, `late`,
            `twice`, `refused` (damaged on the way). What is left arrives.
        seed: of the fates.
        shared: weights in shared memory.
    """

    def __init__(
        self, config: Config, folder: Path, fates: dict[str, float], seed: int = 0, shared=False
    ) -> None:
        self.records, self.states = folder / "records", folder / "states"
        self.records.mkdir(parents=True)
        self.notes = Notes()
        self.fates: dict[tuple[int, int], str] = {}
        self.refused: dict[tuple[int, int], bytes] = {}
        self._draw = np.random.default_rng(seed)
        self._chances = {**fates, "": 1 - sum(fates.values())}
        self.grid = (SharingGrid if shared else LocalGrid)(
            config,
            self.states,
            fault=self._fault,
            change=self._change,
            node_config={"record-dir": str(self.records)},
        )
        self.strategy = play(config, self.grid, self.notes)
        self.layout = self.strategy.outcome.server.layout

    def _fault(self, message):
        if message.content[FIELDS]["kind"] != "train":
            return None
        key = (message.metadata.dst_node_id - FIRST_NODE, int(message.metadata.group_id))
        fate = str(self._draw.choice(list(self._chances), p=list(self._chances.values())))
        self.fates[key] = fate
        return fate if fate not in ("", "refused") else None

    def _change(self, reply):
        fields = reply.content[FIELDS] if reply.has_content() else {"kind": "error"}
        if fields["kind"] == "train-reply":
            key = (fields["client_id"], fields["round"])
            if self.fates.get(key) == "refused":
                array = reply.content[ARRAYS]["update"]
                self.refused[key] = array.data
                array.data = array.data[:-1]
        return reply

    @property
    def counts(self) -> Counter:
        """How often each fate came."""
        return Counter(self.fates.values())

    def state(self, client: int):
        """Return a client's last state."""
        (run_id,) = {Slot(path).header()["run_id"] for path in self.states.glob("client-*")}
        return FileHome(self.states, run_id, client).load(LAST)

    def _recorded(self, what: str) -> dict[int, np.ndarray]:
        sums: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(self.layout.size))
        for path in self.records.glob(f"{what}-*.npy"):
            sums[int(path.name.split("-")[1])] += np.load(path).astype(np.float64)
        return sums

    def changes(self) -> dict[int, np.ndarray]:
        """Return each client's changes before compression, summed in float64."""
        return self._recorded("delta")

    def forgotten(self) -> dict[int, np.ndarray]:
        """Return what each client dropped from its residual on purpose."""
        return self._recorded("forgotten")

    def forgotten_mass(self) -> float:
        """Return the sum of the absolute values that were dropped, round by round."""
        dropped = [np.load(path) for path in self.records.glob("forgotten-*.npy")]
        return sum(float(np.abs(vector).sum(dtype=np.float64)) for vector in dropped)

    def used(self, client: int) -> np.ndarray:
        """Return the updates of a client that were applied."""
        return self._decoded(
            payload
            for name, payload in self.notes.payloads.items()
            if name.endswith(f"up-{client:05d}") and not self._aborted(int(name.split("-")[0]))
        )

    def _aborted(self, round: int) -> bool:
        return self.strategy.outcome.records[round - 1].participants == 0

    def discarded(self, client: int) -> np.ndarray:
        """Return the updates of a client that were refused."""
        return self._decoded(p for (c, _), p in self.refused.items() if c == client)

    def pending(self, client: int) -> np.ndarray:
        """Return the last update of a client if it was neither applied nor refused."""
        state = self.state(client)
        fate = self.fates[client, state.round]
        is_open = fate in ("drop-reply", "late") or (
            fate != "refused" and self._aborted(state.round)
        )
        return self._decoded([state.arrays["pending"].tobytes()] if is_open else [])

    def residual(self, client: int) -> np.ndarray:
        """Return a client's residual."""
        return self.state(client).arrays["residual"].astype(np.float64)

    def _decoded(self, payloads) -> np.ndarray:
        total = np.zeros(self.layout.size)
        for payload in payloads:
            total += decode(payload, self.layout).to_dense()
        return total
