"""The server's current weights in two slot files of a folder, for all processes of a machine."""

import functools
from pathlib import Path

from fedsbc.arrays import Vector
from fedsbc.state_slot import Header, Slot


class SharedWeights:
    """The server's current weights, once per machine, for every actor to map.

    Two files are written in turn, so that a version stays readable while the next is written.
    """

    def __init__(self, folder: Path) -> None:
        self._slots = [Slot(folder / f"weights.{letter}") for letter in "ab"]
        self._header: Header | None = None
        self._read: tuple[Vector, Vector] | None = None

    def publish(self, version: int, weights: Vector, buffers: Vector) -> None:
        """Store the weights of a version, shape (d,), and the float buffers."""
        fields = {"version": version}
        self._slots[version % 2].write(fields, {"weights": weights, "buffers": buffers})

    def read(self, version: int) -> tuple[Vector, Vector] | None:
        """Return read-only views of the weights and buffers of a version, or None.

        The file is looked at each time: what was read before may have been written over.
        """
        slot = self._slots[version % 2]
        header = slot.header()
        if header is None or header["version"] != version:
            return None
        if header is not self._header:  # every client of a round asks for the same version
            arrays = slot.arrays(header)
            self._header, self._read = header, (arrays["weights"], arrays["buffers"])
        return self._read


@functools.cache
def shared_weights(folder: Path) -> SharedWeights:
    """Return this process's view of a folder's shared weights, mapped once."""
    return SharedWeights(folder)
