"""A SuperLink and SuperNodes on this machine, with TLS and node authentication.

Everything lies in one folder: `keys/`, `home/` (Flower's) and `work/` (working directory and logs
of the programs, with nothing that Python could import).
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fedsbc.errors import RunError

from .certificates import make_certificates, make_node_key
from .processes import Processes, free_ports, wait_for_port

HOST = "127.0.0.1"
START_WITHIN_S = 120.0
COMMAND_WITHIN_S = 120.0
RETRY_S = 5.0
JOINED = "SuperNode ID: "
"""What a SuperNode prints once the SuperLink knows it."""

NodeConfig = Mapping[str, str | int | bool]


@dataclass(frozen=True)
class Node:
    """A SuperNode's identity: its registered key and what it is started with."""

    name: str
    private_key: Path
    config: NodeConfig


class Deployment:
    """Starts, registers, restarts and stops; also a context manager.

    Args:
        folder: made here if need be; private keys lie in it.
        environment: more variables for the programs.
        addresses: further addresses of this machine under which SuperNodes reach the SuperLink;
            without any it listens on the loopback alone.
    """

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        addresses: Sequence[str] = (),
    ) -> None:
        self.folder = folder.resolve()
        self.keys, home = self.folder / "keys", self.folder / "home"
        for each in (self.keys, home, self.folder / "work"):
            each.mkdir(parents=True, exist_ok=True)
        self.keys.chmod(0o700)
        self.processes = Processes(
            self.folder / "work", {"FLWR_HOME": str(home), **(environment or {})}
        )
        self.certificates = make_certificates(self.keys, [HOST, "localhost", *addresses])
        self._listens_on = "0.0.0.0" if addresses else HOST
        (self.port,) = free_ports(1)
        self.nodes: dict[str, Node] = {}
        (home / "config.toml").write_text(
            f'[superlink]\ndefault = "fedsbc"\n[superlink.fedsbc]\naddress = "{HOST}:{self.port}"\n'
            f"root-certificates = {json.dumps(str(self.certificates.authority))}\n"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.processes.close()

    def start_superlink(self) -> None:
        """Start the SuperLink and wait until it listens."""
        files, database = self.certificates, self.folder / "work" / "state.db"
        command = ["flower-superlink", "--host", self._listens_on, "--port", str(self.port)]
        command += ["--ssl-ca-certfile", str(files.authority), "--ssl-keyfile", str(files.key)]
        command += ["--ssl-certfile", str(files.certificate), "--enable-supernode-auth"]
        self.processes.start("superlink", [*command, "--database", str(database)])
        wait_for_port(self.processes, "superlink", self.port, START_WITHIN_S)

    def add_node(self, name: str, config: NodeConfig, *, register: bool = True) -> Node:
        """Make a SuperNode's key and register it with the SuperLink.

        Raises:
            RunError: the SuperLink refused it.
        """
        private, public = make_node_key(self.keys, name)
        if register:
            self.flwr("supernode", "register", str(public))
        self.nodes[name] = Node(name, private, config)
        return self.nodes[name]

    def start_node(
        self,
        name: str,
        *,
        authority: Path | None = None,
        address: str = HOST,
        port: int | None = None,
        within: Sequence[str] = (),
    ) -> None:
        """Start a SuperNode; it joins by itself, and again after it was stopped.

        Args:
            name: of a node that was added.
            authority: certificate that the SuperLink's must be signed by; None: the real one.
            address: of the SuperLink, or of what relays to it.
            port: where it listens; None: the SuperLink's.
            within: words before the command, such as those that enter a network namespace.
        """
        node, (own_port,) = self.nodes[name], free_ports(1)
        config = " ".join(f"{key}={_toml(value)}" for key, value in node.config.items())
        command = ["flower-supernode", "--superlink", f"{address}:{port or self.port}"]
        command += ["--port", str(own_port)]
        command += ["--root-certificates", str(authority or self.certificates.authority)]
        command += ["--auth-supernode-private-key", str(node.private_key), "--node-config", config]
        self.processes.start(name, [*within, *command])

    def restart_node(self, name: str, within_s: float) -> None:
        """Start a SuperNode that was stopped or killed until the SuperLink takes it back.

        A SuperLink refuses the key of a node that it believes to be connected: for a minute after
        a node was killed, until its heartbeat is missed.

        Raises:
            RunError: it did not join in time.
        """
        deadline, before = time.monotonic() + within_s, self.processes.log(name).count(JOINED)
        self.start_node(name)
        while self.processes.log(name).count(JOINED) == before:
            if time.monotonic() > deadline:
                raise RunError(f"{name} did not join: {self.processes.last_line(name)}")
            time.sleep(0.5)
            if not self.processes.is_running(name):
                self.processes.stop(name)
                time.sleep(RETRY_S)
                self.start_node(name)

    def flwr(self, *arguments: str) -> dict[str, Any]:
        """Run a `flwr` command against the SuperLink and return what it answers.

        Raises:
            RunError: it failed.
        """
        ended = self.processes.run(["flwr", *arguments, "--format", "json"], COMMAND_WITHIN_S)
        start = ended.stdout.find("{")
        answer = json.loads(ended.stdout[start:]) if start >= 0 else {}
        if ended.returncode or not answer.get("success", False):
            said = answer.get("error-message") or ended.stderr or ended.stdout
            raise RunError(f"flwr {' '.join(arguments[:2])}: {' '.join(str(said).split())}")
        return dict(answer)

    def submit(self, app: Path, resume: Path | None = None) -> str:
        """Start a run of an app and return its Flower run id.

        Args:
            app: its folder.
            resume: the run folder of a run that was broken off, to go on with.
        """
        more = ["--run-config", f"resume={_toml(str(resume))}"] if resume else []
        return str(self.flwr("run", str(app), *more)["run-id"])

    def status(self, run_id: str) -> tuple[str, str]:
        """Return a run's status (`finished:completed`) and its details."""
        listed = self.flwr("list", "--run-id", run_id)["runs"]
        return str(listed[0]["status"]), str(listed[0].get("status-details", ""))

    def wait(self, run_id: str, timeout_s: float, poll_s: float = 2.0) -> tuple[str, str]:
        """Wait until a run has finished and return its status and details.

        Raises:
            RunError: the SuperLink has ended, or the time is up.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            self.processes.check("superlink")
            status, details = self.status(run_id)
            if status.startswith("finished"):
                return status, details
            if time.monotonic() > deadline:
                raise RunError(f"run {run_id} is {status} after {timeout_s:g} s")
            time.sleep(poll_s)


def _toml(value: str | int | bool) -> str:
    return json.dumps(value)
