"""Requests in threads: the latest counts, in turn or beside those before."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import pytest
from textual.message import Message

from flame.tui.toolkit.latest import Answer, LatestRequest
from tests.support.waiting import PATIENCE


class Worker:
    """Doubles numbers, each as soon as it is let go on; zero fails."""

    def __init__(self, in_turn: bool = False) -> None:
        self.inbox: queue.Queue[Message] = queue.Queue()
        self.begun: queue.Queue[int] = queue.Queue()
        self.go_on = threading.Semaphore(0)
        self.requests = LatestRequest[int, int](self.work, Answer, self.inbox.put, in_turn)

    def work(self, number: int) -> Iterator[int]:
        self.begun.put(number)
        assert self.go_on.acquire(timeout=PATIENCE)
        if not number:
            raise ZeroDivisionError
        yield 2 * number

    def answer(self) -> Answer[int, int]:
        self.go_on.release()
        message = self.inbox.get(timeout=PATIENCE)
        assert isinstance(message, Answer)
        return message


def test_a_request_is_answered() -> None:
    worker = Worker()
    worker.requests.ask(4)
    assert worker.requests.busy
    answer = worker.answer()
    assert (answer.request, answer.result()) == (4, 8)
    assert worker.requests.take(answer) and not worker.requests.busy


def test_an_answer_to_an_earlier_request_does_not_count() -> None:
    worker = Worker()
    worker.requests.ask(1)
    worker.requests.ask(2)
    answers = sorted((worker.answer(), worker.answer()), key=lambda answer: answer.request)
    assert not worker.requests.take(answers[0]) and worker.requests.busy
    assert worker.requests.take(answers[1]) and not worker.requests.busy


def test_in_turn_only_the_latest_of_those_that_wait_is_begun() -> None:
    worker = Worker(in_turn=True)
    for number in (1, 2, 3):
        worker.requests.ask(number)
    assert not worker.requests.take(worker.answer())
    answer = worker.answer()
    assert worker.requests.take(answer) and answer.result() == 6
    assert [worker.begun.get(timeout=PATIENCE) for _ in range(2)] == [1, 3]
    assert worker.begun.empty()


def test_what_waits_is_not_begun_once_it_is_given_up() -> None:
    worker = Worker(in_turn=True)
    worker.requests.ask(1)
    worker.requests.ask(2)
    worker.requests.replace(None)
    assert not worker.requests.take(worker.answer())
    assert not worker.requests.busy
    assert [worker.begun.get(timeout=PATIENCE)] == [1] and worker.begun.empty()


def test_after_a_pause_the_request_that_is_the_latest_by_then_is_begun() -> None:
    worker = Worker()
    worker.requests.replace(1)
    worker.requests.begin(after=0.05)
    worker.requests.replace(5)
    assert worker.answer().result() == 10


def test_a_cancelled_pause_begins_nothing() -> None:
    worker = Worker()
    worker.requests.replace(1)
    worker.requests.begin(after=60)
    worker.requests.cancel()
    worker.requests.ask(2)
    assert worker.answer().request == 2
    assert [worker.begun.get(timeout=PATIENCE)] == [2] and worker.begun.empty()


def test_an_error_comes_as_an_answer() -> None:
    worker = Worker()
    worker.requests.ask(0)
    with pytest.raises(ZeroDivisionError):
        worker.answer().result()
