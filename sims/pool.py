"""A pool of Ray actors that works through jobs: what dies or hangs is replaced, not lost.

A job is a batch of messages. Each actor has at most two jobs, so that it never waits for the
driver. When an actor dies, its jobs go back to the queue: clients' states are in files, and a
repeated request starts from the same state, so the bytes are the same.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ray
from flwr.app import Message

from fedsbc.errors import RunError

MAX_ATTEMPTS = 3
JOBS_PER_ACTOR = 2


@dataclass
class Job:
    """A batch of messages for one actor call."""

    messages: Sequence[Message]
    attempts: int = 0


@dataclass
class JobDone:
    """A finished job: its replies, or why there are none."""

    job: Job
    replies: Sequence[Message] = ()
    failure: str | None = None


@dataclass
class _Slot:
    """An actor and the calls that it has, oldest first."""

    actor: Any
    calls: deque[tuple[Any, Job]] = field(default_factory=deque)
    running_since: float = 0.0


class ActorPool:
    """Works through jobs on replaceable actors.

    Args:
        make_actor: starts an actor.
        num_actors: how many.
        timeout_s: seconds that one message may take; a slower actor counts as hung.
        on_replaced: told why an actor was replaced.
        check_engine: raises when nothing more can come of any actor.
    """

    def __init__(
        self,
        make_actor: Callable[[], Any],
        num_actors: int,
        timeout_s: float,
        on_replaced: Callable[[str], None],
        check_engine: Callable[[], None] = lambda: None,
    ) -> None:
        self._make_actor = make_actor
        self._timeout_s = timeout_s
        self._on_replaced = on_replaced
        self._check_engine = check_engine
        self._queue: deque[Job] = deque()
        self._slots = [_Slot(make_actor()) for _ in range(num_actors)]

    def submit(self, messages: Sequence[Message]) -> None:
        """Queue a job and hand it out if an actor has room."""
        self._queue.append(Job(messages))
        self._hand_out()

    def _hand_out(self) -> None:
        while self._queue:
            slot = min(self._slots, key=lambda s: len(s.calls))
            if len(slot.calls) >= JOBS_PER_ACTOR:
                return
            job = self._queue.popleft()
            if not slot.calls:
                slot.running_since = time.monotonic()
            slot.calls.append((slot.actor.handle.remote(list(job.messages)), job))

    def wait(self, timeout_s: float) -> list[JobDone]:
        """Return the jobs that finish within some seconds; returns as soon as one does."""
        refs = [ref for slot in self._slots for ref, _ in slot.calls]
        if not refs:
            return []
        ready, _ = ray.wait(refs, num_returns=1, timeout=timeout_s)
        if not ready:
            self._check_engine()
        more, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
        finished = set(ready) | set(more)
        done = [d for slot in self._slots for d in self._collect(slot, finished)]
        done += [d for slot in self._slots for d in self._check_hung(slot)]
        self._hand_out()
        return done

    def _collect(self, slot: _Slot, finished: set[Any]) -> list[JobDone]:
        done: list[JobDone] = []
        failure: str | None
        while slot.calls and slot.calls[0][0] in finished:
            ref, job = slot.calls[0]
            try:
                replies = ray.get(ref)
            except ray.exceptions.RayActorError as error:
                self._check_engine()
                return done + self._replace(slot, f"an actor died: {_last_line(error)}")
            except ray.exceptions.RayTaskError as error:
                replies, failure = (), f"an actor failed: {error}"
            else:
                failure = None
            slot.calls.popleft()
            slot.running_since = time.monotonic()
            done.append(JobDone(job, replies, failure))
        return done

    def _replace(self, slot: _Slot, reason: str) -> list[JobDone]:
        """Start a new actor in a slot and queue its jobs again; the first one may be to blame."""
        jobs = [job for _, job in slot.calls]
        slot.calls.clear()
        slot.actor = self._make_actor()
        self._on_replaced(reason)
        jobs[0].attempts += 1
        failed = []
        if jobs[0].attempts >= MAX_ATTEMPTS:
            job = jobs.pop(0)
            failed.append(JobDone(job, failure=f"{reason} ({MAX_ATTEMPTS} times)"))
        self._queue.extendleft(reversed(jobs))
        return failed

    def _check_hung(self, slot: _Slot) -> list[JobDone]:
        """Give up the job of an actor that does not come back, and replace the actor."""
        if not slot.calls:
            return []
        allowed_s = self._timeout_s * len(slot.calls[0][1].messages)
        if time.monotonic() - slot.running_since < allowed_s:
            return []
        _, job = slot.calls.popleft()
        ray.kill(slot.actor)
        reason = f"no reply within {self._timeout_s:g} s (failures.client_timeout_s)"
        rest = [queued for _, queued in slot.calls]
        slot.calls.clear()
        slot.actor = self._make_actor()
        self._on_replaced(reason)
        self._queue.extendleft(reversed(rest))
        return [JobDone(job, failure=reason)]

    def close(self) -> None:
        """Kill the actors; those of an engine that is gone are gone too."""
        try:
            self._check_engine()
        except RunError:
            return
        for slot in self._slots:
            ray.kill(slot.actor)


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__
