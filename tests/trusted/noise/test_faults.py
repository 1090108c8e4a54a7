"""Forks: a child never repeats the words of its parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from partita.errors import EntropyError
from partita.trusted.noise import kernel
from partita.trusted.noise.laws import KernelWords, Words
from partita.trusted.noise.system import KERNEL, SYSTEM, SystemNoise

pytestmark = [
    pytest.mark.faults,
    pytest.mark.sample,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

COUNT = 6
PATIENCE = 3600.0
KINDS = [Words, KernelWords]


def in_child(work: Callable[[], bytes]) -> bytes:
    """What `work` gives in a forked child; a child that hangs is killed and gives nothing."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(int(PATIENCE))
            os.write(writer, work())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


def words_of(answer: bytes) -> set[bytes]:
    return {answer[i : i + 8] for i in range(0, len(answer), 8)}


def taken(source: Any) -> bytes:
    return bytes(source.take(COUNT).tobytes())


@pytest.mark.parametrize("kind", KINDS)
def test_a_child_has_words_of_its_own(kind: Callable[[], Any]) -> None:
    """After a fork, parent, child and second child share no word."""
    source = kind()
    before = taken(source)

    children = [in_child(lambda: taken(source)) for _ in range(2)]

    everything = [words_of(each) for each in (before, taken(source), *children)]
    assert [len(each) for each in everything] == [COUNT] * 4
    assert len(set.union(*everything)) == 4 * COUNT


@pytest.mark.parametrize("kind", KINDS)
def test_words_given_back_stay_with_the_parent(kind: Callable[[], Any]) -> None:
    """A child does not draw what the parent gave back before the fork; the parent does."""
    source = kind()
    back = source.take(COUNT)
    source.give_back(back)

    child = in_child(lambda: taken(source))

    assert len(words_of(child)) == COUNT
    assert not words_of(child) & words_of(back.tobytes())
    assert taken(source) == back.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_lock_held_at_the_fork_does_not_hold_up_the_child(kind: Callable[[], Any]) -> None:
    """A child draws even if another thread of the parent was drawing when it was forked."""
    source = kind()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with source._lock:
            held.set()
            done.wait(PATIENCE)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(PATIENCE)
    try:
        child = in_child(lambda: taken(source))
    finally:
        done.set()
        holder.join()

    assert len(words_of(child)) == COUNT
    assert not words_of(child) & words_of(taken(source))


def test_a_grandchild_has_words_of_its_own() -> None:
    """Two forks in a row give three different streams."""
    source = Words()
    source.take(1)

    both = in_child(lambda: in_child(lambda: taken(source)) + taken(source))

    assert len(words_of(both) | words_of(taken(source))) == 3 * COUNT


def test_a_child_that_missed_the_hook_still_starts_over() -> None:
    """Where fork hooks do not run, the process number tells a child that its key is its parent's."""
    source = Words()
    stream = source._stream

    def work() -> bytes:
        source._stream, source._owner = stream, os.getppid()
        return taken(source)

    child = in_child(work)

    assert len(words_of(child)) == COUNT
    assert not words_of(child) & words_of(taken(source))


def test_a_child_without_entropy_draws_nothing() -> None:
    """If the kernel fails in the child, no word of the parent's stream is handed out."""
    source = Words()

    def fail(_: int) -> bytes:
        raise OSError

    def work() -> bytes:
        os.urandom = fail
        try:
            source._owner = -1
            source.take(1)
        except EntropyError:
            return b"refused"
        return b"drawn"

    assert in_child(work) == b"refused"


@pytest.mark.parametrize("noise", [SYSTEM, KERNEL], ids=["system", "kernel"])
def test_noise_of_a_child_is_its_own(noise: SystemNoise) -> None:
    """A session opened before a fork draws different noise on both sides (equal with probability 2^-350)."""
    session = noise.session()
    session.discrete_laplace(2**50)

    def work() -> bytes:
        return bytes(session.discrete_laplace(2**50, 8).tobytes())

    assert in_child(work) != work()


def test_kernel_reports_of_a_child_are_its_own() -> None:
    """Tokens drawn on both sides of a fork differ."""
    assert in_child(lambda: kernel.token(32).encode()) != kernel.token(32).encode()


def _send(source: Any, pipe: Any) -> None:
    pipe.send_bytes(taken(source))


@pytest.mark.parametrize("kind", KINDS)
def test_worker_processes_have_words_of_their_own(kind: Callable[[], Any]) -> None:
    """Workers of a multiprocessing fork context share no word with each other or the parent."""
    source, context = kind(), multiprocessing.get_context("fork")
    source.take(1)
    answers = []
    for _ in range(3):
        receiver, sender = context.Pipe(duplex=False)
        worker = context.Process(target=_send, args=(source, sender))
        worker.start()
        answers.append(receiver.recv_bytes())
        worker.join()
        worker.close()
        receiver.close()
        sender.close()

    assert len(set.union(*map(words_of, answers), words_of(taken(source)))) == 4 * COUNT


def test_a_source_cannot_be_sent_to_a_spawned_process() -> None:
    """Where processes are spawned, arguments are pickled, and that is refused."""
    worker = multiprocessing.get_context("spawn").Process(target=_send, args=(Words(), None))
    with pytest.raises(EntropyError, match="cannot be copied"):
        worker.start()
