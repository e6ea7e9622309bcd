"""What a run tells the world while it goes on: its folder, its progress line, its warnings."""

from typing import Protocol

from fedsbc.ledger import Ledger
from fedsbc.progress import Progress
from fedsbc.records import RoundRecord
from fedsbc.run_folder import RunFolder

MAX_SHOWN = 3
"""Failed clients of a round that get a line on the screen; all are in `errors.log`."""


class Journal(Protocol):
    """Receives the events of a run."""

    def note(self, text: str) -> None:
        """Something that the user should know, on one line."""

    def failure(self, round: int, client_id: int | None, reason: str) -> None:
        """A client's update could not be had or used; the reason's last line says why."""

    def payload(self, round: int, name: str, data: bytes) -> None:
        """A payload that was decoded (`up-00017`) or made (`down`)."""

    def round_done(self, record: RoundRecord, ledger: Ledger) -> None:
        """A round was closed."""


class SilentJournal:
    """Forgets everything: for apps that keep their own records."""

    def note(self, text: str) -> None:
        """Do nothing."""

    def failure(self, round: int, client_id: int | None, reason: str) -> None:
        """Do nothing."""

    def payload(self, round: int, name: str, data: bytes) -> None:
        """Do nothing."""

    def round_done(self, record: RoundRecord, ledger: Ledger) -> None:
        """Do nothing."""


class RunJournal:
    """Writes a run folder and shows progress.

    Args:
        folder: where the records go.
        progress: the live line.
        keep_payloads: write each payload to `payloads/` of the folder.
    """

    def __init__(self, folder: RunFolder, progress: Progress, *, keep_payloads: bool) -> None:
        self._folder = folder
        self._progress = progress
        self._num_failures = 0
        self._payloads = folder.path / "payloads" if keep_payloads else None
        if self._payloads:
            self._payloads.mkdir(exist_ok=True)

    def note(self, text: str) -> None:
        """Print one line."""
        self._progress.note(text)

    def failure(self, round: int, client_id: int | None, reason: str) -> None:
        """Print one line and append the whole reason to `errors.log`."""
        who = "the server" if client_id is None else f"client {client_id}"
        head = f"round {round}, {who}"
        self._folder.append_error(f"{head}: {reason}")
        self._num_failures += 1
        if self._num_failures <= MAX_SHOWN or client_id is None:
            last_line = reason.strip().splitlines()[-1]
            self._progress.note(f"{head}: {last_line} (see {self._folder.path / 'errors.log'})")

    def payload(self, round: int, name: str, data: bytes) -> None:
        """Keep a payload where the config asks for it."""
        if self._payloads:
            (self._payloads / f"round-{round:06d}-{name}.fedsbc").write_bytes(data)

    def round_done(self, record: RoundRecord, ledger: Ledger) -> None:
        """Append the record and move the progress line on."""
        if self._num_failures > MAX_SHOWN:
            self._progress.note(f"round {record.round}: {record.failures} clients failed in all")
        self._num_failures = 0
        self._folder.append_round(record)
        self._progress.update(record, ledger.run_totals())
