"""Messages out, replies in: each reply belongs to one request, and nothing is lost in silence."""

from flwr.app import Error, Message, MessageType, RecordDict

from sims.flower_private import give_id, identify_server
from strategies import exchange as exchanges
from strategies.exchange import Closed, Exchange, Outgoing


class ScriptedGrid:
    """Hands out the replies that a test puts in, in its order."""

    def __init__(self, lost=()):
        identify_server()
        self.lost = set(lost)
        self.sent: dict[int, Message] = {}
        self.replies: list[Message] = []
        self.asked: list[list[str]] = []
        self.answer = lambda request: [Message(RecordDict(), reply_to=request)]

    def push_messages(self, messages):
        ids = []
        for message in messages:
            ids.append(give_id(message))
            self.sent[message.metadata.dst_node_id] = message
            if message.metadata.dst_node_id in self.lost:
                ids[-1] = ""
            else:
                self.replies += self.answer(message)
        return ids

    def pull_messages(self, ids):
        self.asked.append(list(ids))
        found = [m for m in self.replies if m.metadata.reply_to_message_id in set(ids)]
        self.replies = [m for m in self.replies if m not in found]
        return found


def requests(*nodes, round=1):
    return [Message(RecordDict(), node, MessageType.TRAIN, group_id=str(round)) for node in nodes]


def run(exchange, messages):
    answered = []
    failed = exchange.run(messages, lambda request, reply: answered.append(request))
    return (
        sorted(m.metadata.dst_node_id for m in answered),
        {m.metadata.dst_node_id: reason for m, reason in failed},
    )


def test_a_message_that_could_not_be_pushed_is_a_failure():
    answered, failed = run(Exchange(ScriptedGrid(lost=[2]), 1.0), requests(1, 2, 3))
    assert answered == [1, 3]
    assert "could not be sent" in failed[2]


def test_a_silent_node_is_given_up_and_its_late_reply_is_known_as_such():
    grid, late = ScriptedGrid(), []
    exchange = Exchange(grid, 0.02, lambda closed, reply: late.append(closed))
    grid.answer = lambda request: []
    assert run(exchange, requests(1)) == ([], {1: "no reply within 0.02 s"})
    first = grid.sent[1]
    grid.answer = lambda request: [Message(RecordDict(), reply_to=m) for m in (request, first)]
    assert run(exchange, requests(2, round=2)) == ([2], {})
    assert late == [Closed(1, MessageType.TRAIN, "1")]
    run(exchange, requests(3, round=3))
    assert len(late) == 1, "once"
    assert first.metadata.message_id not in grid.asked[-1]


def test_the_first_of_two_replies_counts():
    grid, late = ScriptedGrid(), []
    grid.answer = lambda request: [Message(RecordDict(), reply_to=request) for _ in range(2)]
    exchange = Exchange(grid, 1.0, lambda closed, reply: late.append(closed.node_id))
    assert run(exchange, requests(1)) == ([1], {})
    assert late == [1]


def test_a_reply_from_another_node_than_was_asked_is_nobodys():
    grid = ScriptedGrid()

    def forged(request):
        reply = Message(RecordDict(), reply_to=request)
        reply.metadata.__dict__["_src_node_id"] = 666
        return [reply]

    grid.answer = forged
    assert run(Exchange(grid, 0.02), requests(1)) == ([], {1: "no reply within 0.02 s"})
    grid.answer = lambda request: [*forged(request), Message(RecordDict(), reply_to=request)]
    assert run(Exchange(grid, 0.02), requests(2)) == ([2], {}), "the right one still counts"


def test_an_error_of_the_grid_itself_is_an_answer():
    grid = ScriptedGrid()

    def unavailable(request):
        reply = Message(Error(3, "node unavailable"), reply_to=request)
        reply.metadata.__dict__["_src_node_id"] = 1
        return [reply]

    grid.answer = unavailable
    assert run(Exchange(grid, 100.0), requests(7)) == ([7], {})


def test_replies_that_are_there_are_taken_even_if_time_is_up():
    assert run(Exchange(ScriptedGrid(), 0.0), requests(1, 2)) == ([1, 2], {})


def test_what_is_looked_out_for_is_bounded(monkeypatch):
    monkeypatch.setattr(exchanges, "MAX_LATE", 5)
    grid = ScriptedGrid()
    grid.answer = lambda request: []
    exchange = Exchange(grid, 0.0)
    for round in range(1, 5):
        run(exchange, requests(1, 2, 3, round=round))
    assert len(grid.asked[-1]) == 3 + 5


def test_nobody_to_ask_is_no_wait():
    grid = ScriptedGrid()
    assert run(Exchange(grid, 100.0), []) == ([], {})
    assert grid.asked == []


def test_requests_are_made_while_they_are_sent():
    made, sent_when_made = [], []
    grid = ScriptedGrid()

    def make():
        for message in requests(1, 2, 3):
            sent_when_made.append(len(grid.sent))
            made.append(message)
            yield message

    answered, failed = run(Exchange(grid, 1.0), Outgoing(make(), 3))
    assert (answered, failed) == ([1, 2, 3], {})
    assert sent_when_made == [0, 1, 2]
