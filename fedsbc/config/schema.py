"""What a config may say: the whole tree. Options of components are in the components' own files."""

from typing import Annotated, Literal, Self

from pydantic import Field, SerializeAsAny, model_validator

from fedsbc.availability import AvailabilityOptions
from fedsbc.compressors.base import CompressorOptions
from fedsbc.data.base import DataOptions
from fedsbc.data.partition_options import PartitionOptions
from fedsbc.models.base import ModelOptions
from fedsbc.network.options import NetworkOptions
from fedsbc.options import Fraction, NonNegativeFloat, Options, PositiveFloat, PositiveInt
from fedsbc.training import OptimizerOptions, ScheduleOptions

RunName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
"""Names a folder: a letter or digit, then letters, digits and `.`, `_`, `-`; 100 at most."""

Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]
"""A whole number from 0 to 2^63 - 1."""

Participation = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
"""Fraction of the clients that take part in a round, in (0, 1]."""


class DataConfig(DataOptions):
    """The data set and how it is parted; the options of the data set itself stand beside.

    Attributes:
        partition: options of the partition, `kind` and its own.
    """

    partition: SerializeAsAny[PartitionOptions]


class ClientsConfig(Options):
    """How clients train.

    Attributes:
        count: number of clients; each holds one part of the data.
        local_steps: communication delay n: SGD steps between two exchanges.
        local_epochs: passes over a client's samples between two exchanges, in place of steps.
        batch_size: samples a step.
        optimizer: options of the local optimiser, `name` and its own.
        schedule: options of the learning-rate schedule, `kind` and its own.
    """

    count: PositiveInt
    local_steps: PositiveInt | None = None
    local_epochs: PositiveInt | None = None
    batch_size: PositiveInt
    optimizer: SerializeAsAny[OptimizerOptions]
    schedule: SerializeAsAny[ScheduleOptions]

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.local_steps is None) == (self.local_epochs is None):
            given = "neither" if self.local_steps is None else "both"
            raise ValueError(f"give either `local_steps` or `local_epochs`, given {given}")
        return self


class ResidualConfig(Options):
    """What happens to the residual of a client while it does not take part.

    A round is missed if the client did not train in it, whatever the reason.

    Attributes:
        absent: `keep` it as it is, `decay` it by `factor` for each missed round, or `drop` it
            where `after` rounds in a row or more were missed.
        factor: of `decay`, in [0, 1].
        after: of `drop`, in rounds.
    """

    absent: Literal["keep", "decay", "drop"] = "keep"
    factor: Fraction | None = None
    after: PositiveInt | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        for kind, key in (("decay", "factor"), ("drop", "after")):
            is_given = getattr(self, key) is not None
            if is_given and self.absent != kind:
                raise ValueError(f"`{key}` belongs to `absent: {kind}`, given `{self.absent}`")
            if not is_given and self.absent == kind:
                raise ValueError(f"`absent: {kind}` needs `{key}`")
        return self


class EngineConfig(Options):
    """Where clients run.

    Attributes:
        kind: `ray` actors, Flower's own simulation, or `deploy` to devices.
        actors: number of actors, or `auto`: as many as fit.
        cpus_per_actor: share of CPU cores an actor holds.
        gpus_per_actor: share of GPUs an actor holds.
        device: where models are trained; `auto` takes a GPU where the actor holds one.
        address: of a running Ray cluster or SuperLink; null starts a local one.
    """

    kind: Literal["ray", "flower", "deploy"] = "ray"
    actors: Literal["auto"] | PositiveInt = "auto"
    cpus_per_actor: PositiveFloat = 1.0
    gpus_per_actor: NonNegativeFloat = 0.0
    device: Literal["auto", "cpu", "cuda"] = "auto"
    address: str | None = None


class FailuresConfig(Options):
    """What a run does about clients that fail.

    Attributes:
        on_client_error: `skip` the client in this round, or `fail` the run.
        min_replies: a round with fewer usable replies is aborted and changes nothing.
        abort_after: the run ends after so many aborted rounds in a row.
        client_timeout_s: seconds until a client that has not replied is given up.
        max_update_norm: an update with a larger Euclidean norm is refused; null: never.
    """

    on_client_error: Literal["skip", "fail"] = "skip"
    min_replies: PositiveInt = 1
    abort_after: PositiveInt = 3
    client_timeout_s: PositiveFloat = 600.0
    max_update_norm: PositiveFloat | None = None


class EvaluateConfig(Options):
    """When the model is evaluated.

    Attributes:
        every: rounds between two central evaluations; the last round always has one.
        clients: let the clients of the round test the new model on their own samples too;
            their bits are in the ledger.
    """

    every: PositiveInt = 5
    clients: bool = False


class CheckpointConfig(Options):
    """When the run is saved for `resume`.

    Attributes:
        every: rounds between two checkpoints, with one before the first and one after the last
            round; null or 0: only where the run breaks off. On devices (`engine.kind: deploy`)
            null or 1: after each round; 0: never.
    """

    every: Annotated[int, Field(ge=0)] | None = None


class RecordConfig(Options):
    """What else is written to the run folder.

    Attributes:
        deltas: each client's change before compression. Large.
    """

    deltas: bool = False


class DebugConfig(Options):
    """What helps to look for faults.

    Attributes:
        keep_payloads: write every payload to the run folder, for `fedsbc inspect`.
    """

    keep_payloads: bool = False


class Config(Options):
    """A whole run.

    Attributes:
        name: of the run and, unless `--out` says otherwise, of its folder.
        data: options of the data set, with `partition`.
        rounds: number of rounds.
        participation: fraction of the clients that take part in a round.
        participants: their number instead, where `participation` is left out.
        availability: options of who can take part at all, `kind` and its own.
        aggregation: `mean` over clients, weighted by `examples`, or `vote` of signs.
        upstream: scheme from client to server; `downstream`: from server to clients.
        transport: `shared` memory or the real `wire`; the weights and the ledger are the same.
        final_sync: end with a synchronisation of all clients, counted in the ledger.
    """

    name: RunName
    seed: Seed = 0
    data: SerializeAsAny[DataConfig]
    model: SerializeAsAny[ModelOptions]
    clients: ClientsConfig
    rounds: PositiveInt
    participation: Participation = 1.0
    participants: PositiveInt | None = None
    availability: SerializeAsAny[AvailabilityOptions]
    aggregation: Literal["mean", "examples", "vote"] = "mean"
    upstream: SerializeAsAny[CompressorOptions]
    downstream: SerializeAsAny[CompressorOptions]
    residual: ResidualConfig = ResidualConfig()
    network: SerializeAsAny[NetworkOptions]
    engine: EngineConfig = EngineConfig()
    transport: Literal["shared", "wire"] = "shared"
    failures: FailuresConfig = FailuresConfig()
    evaluate: EvaluateConfig = EvaluateConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    record: RecordConfig = RecordConfig()
    debug: DebugConfig = DebugConfig()
    final_sync: bool = False

    @property
    def cohort_size(self) -> int:
        """Number of clients of a round, as far as so many are available."""
        if self.participants is not None:
            return self.participants
        return max(1, round(self.participation * self.clients.count))

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.participants is not None and self.participation != 1:
            raise ValueError(
                f"`participation` is {self.participation} and `participants` is "
                f"{self.participants}; expected one of them (`participation: 1` is as good as none)"
            )
        if self.cohort_size > self.clients.count:
            raise ValueError(
                f"`participants` is {self.participants}, but `clients.count` is "
                f"{self.clients.count}"
            )
        if self.failures.min_replies > self.cohort_size:
            raise ValueError(
                f"`failures.min_replies` is {self.failures.min_replies}, but only "
                f"{self.cohort_size} clients take part in a round"
            )
        return self
