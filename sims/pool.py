"""A pool of Ray actors that works through jobs: what dies or hangs is replaced, not lost.

A job is a batch of messages for one site (`sims.sites`): actors of the site where its clients'
states are work through it. Each actor has at most two jobs, so that it never waits for the driver.
When an actor dies, its jobs go back to the queue: clients' states are in files, and a repeated
request starts from the same state, so the bytes are the same.
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ray
from flwr.app import Message

from fedsbc.errors import RunError, StatesLost

from .counter import STARTING
from .sites import Progress

MAX_ATTEMPTS = 3
JOBS_PER_ACTOR = 2


@dataclass
class Job:
    """A batch of messages for one actor call, at a site."""

    messages: Sequence[Message]
    attempts: int = 0
    site: int = 0


@dataclass(frozen=True)
class Seat:
    """A place for an actor.

    Attributes:
        start: starts one; returns how far it is, and its handle.
        site: number of the site.
    """

    start: Callable[[], tuple[Progress, Any]]
    site: int = 0


@dataclass
class JobDone:
    """A finished job: its replies, or why there are none."""

    job: Job
    replies: Sequence[Message] = ()
    failure: str | None = None


@dataclass
class _Slot:
    """An actor and the calls that it has, oldest first.

    Attributes:
        seat: where it is.
        counter: messages that the actor has handled, or `STARTING`.
        actor: its handle.
        calls: each with its job.
        finished: messages of the calls that came back.
        seen: value of the counter when it was last looked at.
        seen_at: when it last changed, or when work was handed to an idle actor.
    """

    seat: Seat
    counter: Progress
    actor: Any
    calls: deque[tuple[Any, Job]] = field(default_factory=deque)
    finished: int = 0
    seen: int = STARTING
    seen_at: float = 0.0

    def has_room(self) -> bool:
        """Return whether the actor may have another job."""
        return len(self.calls) < JOBS_PER_ACTOR

    def num_waiting(self) -> int:
        """Return the messages that the actor has still to handle."""
        handed = sum(len(job.messages) for _, job in self.calls)
        return handed - max(0, self.counter.value - self.finished)

    def idle_s(self) -> float:
        """Return for how long the actor has made no progress; 0.0 while it starts."""
        now, value = time.monotonic(), self.counter.value
        if value != self.seen or value == STARTING or not self.calls:
            self.seen, self.seen_at = value, now
        return now - self.seen_at


class ActorPool:
    """Works through jobs on replaceable actors.

    Args:
        seats: one for each actor.
        timeout_s: seconds that one message may take; a slower actor counts as hung.
        on_replaced: told why an actor was replaced.
        check_engine: raises when nothing more can come of any actor; told whether one has just
            died.
    """

    def __init__(
        self,
        seats: Sequence[Seat],
        timeout_s: float,
        on_replaced: Callable[[str], None],
        check_engine: Callable[[bool], None] = lambda has_died: None,
    ) -> None:
        self._timeout_s = timeout_s
        self._on_replaced = on_replaced
        self._check_engine = check_engine
        self._queues: dict[int, deque[Job]] = defaultdict(deque)
        self._slots = [_Slot(seat, *seat.start()) for seat in seats]

    def _start(self, slot: _Slot) -> None:
        """Give a slot a new actor, and return to the queue what the old one had."""
        self._queues[slot.seat.site].extendleft(job for _, job in reversed(slot.calls))
        slot.calls.clear()
        slot.counter, slot.actor = slot.seat.start()
        slot.finished, slot.seen = 0, STARTING

    def submit(self, messages: Sequence[Message], site: int = 0) -> None:
        """Queue a job and hand it out if an actor has room."""
        self._queues[site].append(Job(messages, site=site))
        self._hand_out()

    def _hand_out(self) -> None:
        for site, queue in self._queues.items():
            slots = [slot for slot in self._slots if slot.seat.site == site]
            while queue and (free := [slot for slot in slots if slot.has_room()]):
                slot = min(free, key=_Slot.num_waiting)
                job = queue.popleft()
                slot.idle_s()  # an idle actor's time begins now
                slot.calls.append((slot.actor.handle.remote(list(job.messages)), job))

    def wait(self, timeout_s: float) -> list[JobDone]:
        """Return the jobs that finish within some seconds; returns as soon as one does."""
        refs = [ref for slot in self._slots for ref, _ in slot.calls]
        if not refs:
            return []
        self._check_engine(False)
        ready, _ = ray.wait(refs, num_returns=1, timeout=timeout_s)
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
            except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError) as error:
                self._check_engine(True)
                return done + self._replace(slot, f"an actor died: {_last_line(error)}")
            except ray.exceptions.RayTaskError as error:
                replies, failure = (), f"an actor failed: {error}"
            else:
                failure = None
            slot.calls.popleft()
            slot.finished += len(job.messages)
            done.append(JobDone(job, replies, failure))
        return done

    def _replace(self, slot: _Slot, reason: str) -> list[JobDone]:
        """Start a new actor in a slot and queue its jobs again; the first one may be to blame."""
        first = slot.calls[0][1]
        first.attempts += 1
        failed = []
        if first.attempts >= MAX_ATTEMPTS:
            slot.calls.popleft()
            failed.append(JobDone(first, failure=f"{reason} ({MAX_ATTEMPTS} times)"))
        self._start(slot)
        self._on_replaced(reason)
        return failed

    def _check_hung(self, slot: _Slot) -> list[JobDone]:
        """Give up the client that an actor hangs on, and replace the actor.

        The other clients of its batch are played again, from the same states.
        """
        if slot.idle_s() < self._timeout_s or not slot.calls:
            return []
        ref, job = slot.calls.popleft()
        at = min(slot.seen - slot.finished, len(job.messages) - 1)
        others = [message for index, message in enumerate(job.messages) if index != at]
        if others:
            slot.calls.appendleft((ref, Job(others, job.attempts, job.site)))
        ray.kill(slot.actor)
        self._start(slot)
        reason = f"no reply within {self._timeout_s:g} s (failures.client_timeout_s)"
        self._on_replaced(reason)
        return [JobDone(Job([job.messages[at]]), failure=reason)]

    def close(self) -> None:
        """Kill the actors; those of an engine that is gone are gone too."""
        try:
            self._check_engine(False)
        except StatesLost:
            pass  # the other nodes' are still there
        except RunError:
            return
        for slot in self._slots:
            ray.kill(slot.actor)


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__
