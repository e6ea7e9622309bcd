"""The Flower strategy: one round loop that serves every compressor, on any Grid."""

import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from fedsbc.arrays import Vector
from fedsbc.checkpoint import Snapshot
from fedsbc.config import Config
from fedsbc.errors import ConfigError, RunError, StatesLost
from fedsbc.experiment import downstream_compressor
from fedsbc.layout import Layout
from fedsbc.ledger import Ledger
from fedsbc.network import build
from fedsbc.records import RoundRecord

from .checkpoint import Checkpoints, restore_members, restore_server, snapshot_of
from .exchange import Exchange
from .hello import empty_clients, say_hello
from .journal import Journal, SilentJournal
from .names import check_names
from .round_result import RoundResult
from .rounds import Rounds
from .server import Server
from .visits import evaluate_clients, sync_clients

EvaluateFn = Callable[[int, ArrayRecord], MetricRecord | None]


@dataclass(frozen=True)
class Outcome:
    """What a strategy leaves behind, beside Flower's `Result`; also where a run breaks off.

    Attributes:
        server: the model after the last closed round.
        ledger: one row per message.
        records: one record per round.
    """

    server: Server
    ledger: Ledger
    records: list[RoundRecord]


class CompressedStrategy(Strategy):
    """Federated learning with compressed updates in both directions, every bit counted.

    The strategy plays its own rounds over `push_messages` and `pull_messages`, because the
    clients' answers must be matched, checked and acknowledged one by one.

    Args:
        config: the experiment.
        buffer_names: arrays of `initial_arrays` that are float buffers, not parameters.
        journal: told of rounds, failures and payloads.
        checkpoints: saves the run; None: nobody does.
        resumed: where the run goes on; None: it begins.
        incarnation: counts the server's starts within the run, from 1.
    """

    def __init__(
        self,
        config: Config,
        *,
        buffer_names: Iterable[str] = (),
        journal: Journal | None = None,
        checkpoints: Checkpoints | None = None,
        resumed: Snapshot | None = None,
        incarnation: int = 1,
    ) -> None:
        self.config = config
        self.outcome: Outcome | None = None
        self._buffer_names = frozenset(buffer_names)
        self._journal = journal or SilentJournal()
        self._checkpoints = checkpoints
        self._resumed = resumed
        self._incarnation = incarnation
        self._num_aborted = resumed.num_aborted if resumed else 0

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int | None = None,
        timeout: float | None = None,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: EvaluateFn | None = None,
    ) -> Result:
        """Run the experiment.

        Args:
            grid: any Flower Grid.
            initial_arrays: float32 arrays of the model, parameters in the clients' order.
            num_rounds: rounds to play; the config's if None.
            timeout: seconds to wait for a round's replies; the config's if None.
            train_config: not used: the experiment is in the config of both sides.
            evaluate_config: not used.
            evaluate_fn: called with the round and the model; its metrics `accuracy` and `loss`
                go into the records.

        Raises:
            ConfigError: another package hides one of ours.
            RunError: too many rounds in a row could not be used, or the nodes are not those of
                the config.
            StatesLost: a node is gone, and the states of its clients with it.
        """
        check_names()
        rounds = self._prepare(grid, initial_arrays, timeout)
        records = list(self._resumed.records) if self._resumed else []
        self.outcome = Outcome(rounds.server, rounds.ledger, records)
        try:
            result = self._play_all(rounds, records, num_rounds or self.config.rounds, evaluate_fn)
        except StatesLost:
            raise  # the last round cannot be saved without them
        except BaseException:  # Ctrl-C too: what was reached is kept
            if self._checkpoints is not None:
                self._checkpoints.broken_off()
            raise
        result.arrays = arrays_of(rounds.server)
        return result

    def _play_all(
        self,
        rounds: Rounds,
        records: list[RoundRecord],
        last: int,
        evaluate_fn: EvaluateFn | None,
    ) -> Result:
        """Play the rounds that are left, and save the run in between."""
        result, saver = Result(), self._checkpoints
        if saver is not None:
            saver.begin(rounds.exchange.grid, snapshot_of(rounds, self._num_aborted, records))
        for round in range(rounds.server.version + 1, last + 1):
            is_evaluated = round == last or round % self.config.evaluate.every == 0
            played, record = self._play(rounds, round, is_evaluated, evaluate_fn, result)
            records.append(record)
            self._num_aborted = self._num_aborted + 1 if played.is_aborted else 0
            self._journal.round_done(record, rounds.ledger)
            if saver is not None:
                snapshot = snapshot_of(rounds, self._num_aborted, records)
                saver.round_done(snapshot, is_last=round == last)
            self._check_aborted(round)
        if self.config.final_sync:
            sync_clients(rounds, last)
        return result

    def _prepare(self, grid: Grid, initial: ArrayRecord, timeout: float | None) -> Rounds:
        layout, weights = self._flat(initial, of_buffers=False)
        buffer_layout, buffers = self._flat(initial, of_buffers=True)
        server = Server(
            layout,
            buffer_layout,
            weights,
            buffers,
            downstream_compressor(self.config),
            self.config.seed,
            averages_buffers=self.config.model.buffers == "average",
        )
        exchange = Exchange(grid, timeout or self.config.failures.client_timeout_s)
        resumed, ledger = self._resumed, Ledger()
        run_id = resumed.run_id if resumed else secrets.token_hex(8)
        members = say_hello(exchange, self.config, layout, run_id, self._incarnation, ledger)
        if (empty := empty_clients(members)) is not None:
            self._journal.note(empty)
        if resumed is not None:
            restore_server(server, resumed)
            for line in restore_members(members, resumed):
                self._journal.note(line)
            ledger = resumed.ledger  # an interruption costs the network of the run nothing
        return Rounds(
            self.config,
            server,
            members,
            exchange,
            ledger,
            self._journal,
            run_id,
            network=build(self.config.network, self.config.seed, self.config.clients.count),
            incarnation=self._incarnation,
        )

    def _flat(self, arrays: ArrayRecord, *, of_buffers: bool) -> tuple[Layout, Vector]:
        """Return the layout and the flat vector of the parameters, or of the buffers."""
        chosen = {
            n: a.numpy() for n, a in arrays.items() if (n in self._buffer_names) == of_buffers
        }
        for name, array in chosen.items():
            if array.dtype != np.float32:
                raise ConfigError(f"initial array {name!r} is {array.dtype}; expected float32")
        layout = Layout.of((name, array.shape) for name, array in chosen.items())
        vector = layout.zeros()
        for view, array in zip(layout.split(vector), chosen.values(), strict=True):
            view[:] = array.reshape(-1)
        return layout, vector

    def _play(
        self,
        rounds: Rounds,
        round: int,
        is_evaluated: bool,
        evaluate_fn: EvaluateFn | None,
        result: Result,
    ) -> tuple[RoundResult, RoundRecord]:
        started = time.monotonic()
        before = rounds.ledger.run_totals()
        played = rounds.play(round)
        metrics = clients = None
        if is_evaluated and evaluate_fn is not None:
            metrics = evaluate_fn(round, arrays_of(rounds.server))
        if metrics is not None:
            result.evaluate_metrics_serverapp[round] = metrics
        if is_evaluated and self.config.evaluate.clients:
            clients = evaluate_clients(rounds, played)
        if clients is not None:
            result.evaluate_metrics_clientapp[round] = MetricRecord(asdict(clients))
        after = rounds.ledger.run_totals()
        record = RoundRecord(
            round=round,
            accuracy=_metric(metrics, "accuracy"),
            loss=_metric(metrics, "loss"),
            train_loss=played.train_loss,
            up_bits=after.up.payload_bits - before.up.payload_bits,
            down_bits=after.down.payload_bits - before.down.payload_bits,
            simulated_s=rounds.simulated_s(played),
            wall_s=time.monotonic() - started,
            participants=len(played.used),
            failures=played.failures,
            num_steps=sum(reply.num_steps for reply in played.used),
            forgotten=played.forgotten,
            client_accuracy=clients.accuracy if clients else None,
            client_loss=clients.loss if clients else None,
        )
        return played, record

    def _check_aborted(self, round: int) -> None:
        if self._num_aborted >= self.config.failures.abort_after:
            raise RunError(
                f"round {round}: {self._num_aborted} rounds in a row could not be used "
                f"(failures.abort_after); the model is unchanged since round "
                f"{round - self._num_aborted}"
            )

    def summary(self) -> None:
        """Do nothing: the journal tells what happens."""

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Refuse: rounds are played by `start`."""
        raise RunError("CompressedStrategy plays its own rounds: call start()")

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Refuse: rounds are played by `start`."""
        raise RunError("CompressedStrategy plays its own rounds: call start()")

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Refuse: rounds are played by `start`."""
        raise RunError("CompressedStrategy plays its own rounds: call start()")

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Refuse: rounds are played by `start`."""
        raise RunError("CompressedStrategy plays its own rounds: call start()")


def arrays_of(server: Server) -> ArrayRecord:
    """Return the server's model as named float32 arrays: parameters, then float buffers."""
    arrays = {}
    for layout, vector in (
        (server.layout, server.weights),
        (server.buffer_layout, server.buffers),
    ):
        for spec, view in zip(layout.tensors, layout.split(vector), strict=True):
            arrays[spec.name] = view.reshape(spec.shape)
    return array_record(arrays)


def array_record(arrays: Mapping[str, Vector]) -> ArrayRecord:
    """Return named float32 arrays of any shape as a Flower record."""
    return ArrayRecord({name: Array(array) for name, array in arrays.items()})


def _metric(metrics: MetricRecord | None, name: str) -> float | None:
    value = None if metrics is None else metrics.get(name)
    return float(value) if isinstance(value, int | float) else None
