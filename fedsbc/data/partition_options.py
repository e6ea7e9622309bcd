"""What a partition says in a config: one options class for each kind."""

from typing import Annotated, Literal

from pydantic import Field

from fedsbc.options import Options, PositiveFloat, PositiveInt


class PartitionOptions(Options):
    """Options of a partition; subclasses narrow `kind` to a `Literal`."""

    kind: str


class IidOptions(PartitionOptions):
    """Options of `iid`: rows at random, sizes that differ by one at most."""

    kind: Literal["iid"] = "iid"


class DirichletOptions(PartitionOptions):
    """Options of `dirichlet`: each class is spread by shares from Dirichlet(alpha).

    Source: Yurochkin et al., arXiv 1905.12022.

    Attributes:
        alpha: concentration; the smaller, the more the clients differ.
        min_size: samples that each client has at least.
    """

    kind: Literal["dirichlet"] = "dirichlet"
    alpha: PositiveFloat
    min_size: Annotated[int, Field(ge=0)] = 1


class ShardsOptions(PartitionOptions):
    """Options of `shards`: rows sorted by label, cut into equal shards, dealt at random.

    Rows that are left over make shards of their own, which go to the first clients.
    Source: McMahan et al., arXiv 1602.05629.

    Attributes:
        shards_per_client: shards that each client gets.
    """

    kind: Literal["shards"] = "shards"
    shards_per_client: PositiveInt = 2


class PathologicalOptions(PartitionOptions):
    """Options of `pathological`: each client has samples of a few classes only.

    Client i has class i modulo the number of classes, and others at random.
    Source: Li et al., arXiv 2102.02079.

    Attributes:
        classes_per_client: classes that each client has.
    """

    kind: Literal["pathological"] = "pathological"
    classes_per_client: PositiveInt = 2


class WritersOptions(PartitionOptions):
    """Options of `writers`: by who wrote each MNIST digit, a natural and unbalanced partition.

    With as many clients as writers (539) one writer is one client; with fewer, writers are
    dealt at random, so that the numbers of writers differ by one at most.

    Attributes:
        path: the file `mnist_writers.npz` or its folder; null: the folder in `FEDSBC_DATA`.
    """

    kind: Literal["writers"] = "writers"
    path: str | None = None
