"""What a run tells the world while it goes on: its folder, its progress line, its warnings."""

from typing import Protocol

from fedsbc.ledger import Ledger
from fedsbc.progress import Progress
from fedsbc.records import RoundRecord
from fedsbc.run_folder import RunFolder


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

    Failed clients get one line a round on the screen, however many they are: the first one's
    reason. All reasons are in `errors.log`.

    Args:
        folder: where the records go.
        progress: the live line.
        keep_payloads: write each payload to `payloads/` of the folder.
    """

    def __init__(self, folder: RunFolder, progress: Progress, *, keep_payloads: bool) -> None:
        self._folder = folder
        self._progress = progress
        self._failures: list[str] = []
        self._payloads = folder.path / "payloads" if keep_payloads else None
        if self._payloads:
            self._payloads.mkdir(exist_ok=True)

    def note(self, text: str) -> None:
        """Print one line."""
        self._progress.note(text)

    def failure(self, round: int, client_id: int | None, reason: str) -> None:
        """Append the whole reason to `errors.log`; its last line is for the screen."""
        who = "the server" if client_id is None else f"client {client_id}"
        self._folder.append_error(f"round {round}, {who}: {reason}")
        self._failures.append(f"{who}: {reason.strip().splitlines()[-1]}")

    def payload(self, round: int, name: str, data: bytes) -> None:
        """Keep a payload where the config asks for it."""
        if self._payloads:
            (self._payloads / f"round-{round:06d}-{name}.fedsbc").write_bytes(data)

    def round_done(self, record: RoundRecord, ledger: Ledger) -> None:
        """Append the record, say what failed, and move the progress line on."""
        if self._failures:
            first, *others = self._failures
            more = f" (and {len(others)} more)" if others else ""
            log = self._folder.path / "errors.log"
            self._progress.note(f"round {record.round}, {first}{more}; see {log}")
            self._failures = []
        self._folder.append_round(record)
        self._progress.update(record, ledger.run_totals())
