"""The pool of actors, with an engine that does what a test says: dead, hung and slow actors."""

import itertools
import time
from types import SimpleNamespace

import pytest
import ray

from fedsbc.errors import RunError
from sims import pool as pools
from sims.counter import STARTING, Counter
from sims.pool import ActorPool, Job, Seat


class Ref(SimpleNamespace):
    """A call; two are never equal."""

    __hash__ = object.__hash__


class Engine:
    """Stands for Ray: an actor handles a call when it is waited for, unless it dies or hangs."""

    exceptions = ray.exceptions

    def __init__(self) -> None:
        self.hangs_on: set[str] = set()
        self.dies_on: list[str] = []
        self.num_killed = 0
        self.numbers = itertools.count()

    def seat(self, folder, site=0):
        def start():
            number = Counter(folder / f"{next(self.numbers)}.count", 0)
            handle = SimpleNamespace(remote=lambda batch: self.call(number, batch))
            return number, SimpleNamespace(handle=handle)

        return Seat(start, site)

    def call(self, counter, batch):
        return Ref(counter=counter, batch=batch, result=None, hangs=False)

    def play(self, ref):
        replies = []
        for message in ref.batch:
            if message in self.hangs_on:
                ref.hangs = True
                return
            if message in self.dies_on:
                self.dies_on.remove(message)
                ref.result = ray.exceptions.RayActorError()
                return
            replies.append(message.upper())
            ref.counter.value += 1
        ref.result = replies

    def wait(self, refs, num_returns, timeout):
        for ref in refs:
            if ref.result is None:
                if not ref.hangs:
                    self.play(ref)
                if ref.result is None:
                    break
        ready = [ref for ref in refs if ref.result is not None]
        if not ready:
            time.sleep(timeout)
        return ready, [ref for ref in refs if ref.result is None]

    def get(self, ref):
        if isinstance(ref.result, Exception):
            raise ref.result
        return ref.result

    def kill(self, actor):
        self.num_killed += 1


@pytest.fixture
def engine(monkeypatch):
    engine = Engine()
    monkeypatch.setattr(pools, "ray", engine)
    return engine


def make(engine, tmp_path, timeout_s=60.0, **options):
    notes = []
    seats = [engine.seat(tmp_path)]
    pool = ActorPool(seats, timeout_s, on_replaced=notes.append, **options)
    return pool, notes


def finish(pool, num_messages):
    """Wait until every message is answered; return replies and failures."""
    replies, failures = [], {}
    while len(replies) + len(failures) < num_messages:
        for done in pool.wait(0.01):
            if done.failure is None:
                replies += done.replies
            else:
                failures.update(dict.fromkeys(done.job.messages, done.failure))
    return sorted(replies), failures


def test_a_job_goes_to_the_actor_with_the_fewest_messages_to_handle(engine, tmp_path):
    pool = ActorPool([engine.seat(tmp_path), engine.seat(tmp_path)], 60.0, on_replaced=print)
    for batch in (["a"] * 6, ["b"] * 2, ["c"] * 2, ["d"], ["e"]):
        pool.submit(batch)
    first, second = pool._slots
    assert [len(job.messages) for _, job in first.calls] == [6, 1]
    assert [len(job.messages) for _, job in second.calls] == [2, 2]
    assert (first.num_waiting(), second.num_waiting()) == (7, 4)
    first.counter.value += 5
    assert first.num_waiting() == 2
    first.counter.value -= 5
    replies, failures = finish(pool, 12)
    assert (len(replies), failures) == (12, {})
    assert (first.num_waiting(), second.num_waiting()) == (0, 0)


def test_a_client_that_hangs_fails_alone(engine, tmp_path):
    engine.hangs_on = {"c"}
    pool, notes = make(engine, tmp_path, timeout_s=0.05)
    pool.submit(["a", "b", "c", "d"])
    pool.submit(["e", "f"])
    replies, failures = finish(pool, 6)
    assert replies == ["A", "B", "D", "E", "F"]
    assert list(failures) == ["c"]
    assert "failures.client_timeout_s" in failures["c"]
    assert len(notes) == engine.num_killed == 1


def test_a_death_is_answered_by_playing_the_batch_again(engine, tmp_path):
    engine.dies_on = ["b", "b"]
    pool, notes = make(engine, tmp_path)
    pool.submit(["a", "b"])
    assert finish(pool, 2) == (["A", "B"], {})
    assert len(notes) == 2


def test_a_batch_that_kills_three_actors_is_given_up(engine, tmp_path):
    engine.dies_on = ["b"] * 3
    pool, _ = make(engine, tmp_path)
    pool.submit(["a", "b"])
    pool.submit(["c"])
    replies, failures = finish(pool, 3)
    assert replies == ["C"]
    assert set(failures) == {"a", "b"}
    assert "3 times" in failures["a"]


def test_an_actor_that_starts_does_not_hang(engine, tmp_path):
    engine.hangs_on = {"a"}
    pool, notes = make(engine, tmp_path, timeout_s=0.02)
    (slot,) = pool._slots
    slot.counter.value = STARTING
    pool.submit(["a"])
    for _ in range(10):
        assert pool.wait(0.01) == []
    assert notes == []
    slot.counter.value = 0
    assert finish(pool, 1)[1].keys() == {"a"}


def test_without_an_engine_the_run_ends(engine, tmp_path):
    def check(has_died):
        raise RunError("the head has died")

    engine.dies_on = ["a"]
    pool, _ = make(engine, tmp_path, check_engine=check)
    pool.submit(["a"])
    with pytest.raises(RunError, match="the head has died"):
        pool.wait(0.01)
    pool.close()
    assert engine.num_killed == 0, "nobody is asked any more"


def test_jobs_of_a_hung_actor_keep_their_attempts(engine, tmp_path):
    engine.hangs_on = {"a"}
    pool, _ = make(engine, tmp_path, timeout_s=0.02)
    pool.submit(["a", "b"])
    pool._slots[0].calls[0] = (pool._slots[0].calls[0][0], Job(["a", "b"], attempts=2))
    first = []
    while not first:
        first = pool.wait(0.01)
    assert [job.attempts for _, job in pool._slots[0].calls] == [2]


def test_a_job_goes_to_an_actor_of_its_site(engine, tmp_path):
    played = []
    play = engine.play
    engine.play = lambda ref: (played.append((ref.site, ref.batch)), play(ref))
    call = engine.call

    def seat(site):
        made = engine.seat(tmp_path, site)

        def start():
            counter, _ = made.start()

            def remote(batch):
                ref = call(counter, batch)
                ref.site = site
                return ref

            return counter, SimpleNamespace(handle=SimpleNamespace(remote=remote))

        return Seat(start, site)

    pool = ActorPool([seat(0), seat(1), seat(1)], 60.0, on_replaced=print)
    for number in range(8):
        pool.submit([f"a{number}"], site=1)
    pool.submit(["b"], site=0)
    engine.dies_on = ["a0"]
    assert len(finish(pool, 9)[0]) == 9
    assert {batch[0][0]: site for site, batch in played} == {"a": 1, "b": 0}
