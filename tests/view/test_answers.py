"""The line of answers: what is there at once, what is kept, what is overtaken."""

import asyncio
import threading
from concurrent.futures import Future

import pytest

pytest.importorskip("nicegui")

from pathlines.foundation.errors import ArgumentError
from pathlines.view.site.computing import Answers


class AtOnce:
    """A pool whose answers are there before anybody can wait for them."""

    def submit(self, work, compute):
        done = Future()
        done.set_result(work(compute))
        return done


def test_an_answer_that_is_there_at_once_holds_nobody_up():
    answers, found = Answers(), []
    answers.pool.shutdown()
    answers.pool = AtOnce()
    thread = threading.Thread(target=lambda: found.append(asyncio.run(answers.of("x", 1, lambda: [1, 2]))), daemon=True)
    thread.start()
    thread.join(20)
    assert found == [b"[1,2]"] and answers.idle
    assert list(answers.kept.values()) == [b"[1,2]"]


def test_an_answer_is_computed_once_and_errors_are_not_kept():
    counted = []

    def compute():
        counted.append(1)
        if len(counted) == 1:
            raise ArgumentError("no")
        return len(counted)

    async def ask():
        with pytest.raises(ArgumentError):
            await answers.of("x", 1, compute)
        return [await answers.of("x", 1, compute) for _ in range(3)]

    answers = Answers()
    assert asyncio.run(ask()) == [b"2", b"2", b"2"]
    answers.close()
