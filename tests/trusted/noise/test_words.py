"""Sources of words: never repeated, never copied, handed out in order."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.errors import EntropyError, InvalidParameter, TapeExhausted
from partita.testing import EndlessTape, tape_noise
from partita.trusted.mechanisms.base import PartNoise
from partita.trusted.mechanisms.partition import Partition
from partita.trusted.noise.laws import KernelWords, Tape, Words
from partita.trusted.noise.system import KERNEL, SYSTEM, SystemNoise
from partita.trusted.secret import Histogram

FRESH: list[type[Words] | type[KernelWords]] = [Words, KernelWords]


@pytest.mark.statistics(fresh=True)
@pytest.mark.parametrize("kind", FRESH)
def test_no_word_comes_twice(kind: Callable[[], Words]) -> None:
    """100,000 words of ten sources are distinct; a correct source fails with probability below 3e-10."""
    words = np.concatenate([kind().take(10_000) for _ in range(10)])

    assert np.unique(words).size == 100_000


@pytest.mark.statistics(fresh=True)
@pytest.mark.parametrize("kind", FRESH)
def test_every_bit_is_used(kind: Callable[[], Words]) -> None:
    """Each of 64 bits is set in half of 4,096 words, within 8 standard deviations (error below 1e-13)."""
    words = kind().take(4096)
    ones = np.array([int(((words >> np.uint64(bit)) & np.uint64(1)).sum()) for bit in range(64)])

    assert np.abs(ones - 2048).max() < 8 * 32


@pytest.mark.statistics(fresh=True)
@pytest.mark.parametrize("kind", FRESH)
def test_threads_share_a_source_without_sharing_a_word(kind: Callable[[], Words]) -> None:
    """Eight threads that take and give back get distinct words; a correct source fails with 1e-10."""
    source = kind()

    def work(_: int) -> list[int]:
        kept: list[int] = []
        for count in range(1, 120):
            kept += source.take(count).tolist()
        return kept

    with ThreadPoolExecutor(8) as pool:
        words = [word for taken in pool.map(work, range(8)) for word in taken]

    assert len(words) == 8 * sum(range(1, 120))
    assert len(set(words)) == len(words)


@pytest.mark.statistics(fresh=True)
@pytest.mark.parametrize("kind", FRESH)
def test_words_given_back_come_next_and_once(kind: Callable[[], Words]) -> None:
    """What was given back is handed out first, in order, and then fresh words follow."""
    source = kind()
    taken = source.take(10)
    source.give_back(taken[4:])

    again = source.take(3).tolist(), source.take_up_to(5).tolist()

    assert again[0] == taken[4:7].tolist()
    assert again[1][:3] == taken[7:].tolist()
    assert not set(again[1][3:]) & set(taken.tolist())


class _Numbers:
    """In place of the kernel's bytes: the words 0, 1, 2 and so on."""

    def __init__(self) -> None:
        self.next = 0

    def entropy(self, size: int) -> bytes:
        words = np.arange(self.next, self.next + size // 8, dtype=np.uint64)
        self.next += words.size
        return words.tobytes()


STEPS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 3)), max_size=30)
"""So many words are taken, so many of them given back at the end, in so many pieces."""


@given(STEPS)
def test_every_word_is_used_once_and_in_order(steps: list[tuple[int, int, int]]) -> None:
    """However words are taken and given back, those that are kept are 0, 1, 2, ..., each of them once."""
    kept: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("partita.trusted.noise.laws.entropy", _Numbers().entropy)
        source = KernelWords()
        for count, back, pieces in steps:
            words = source.take(count)
            used = count - min(count, back)
            kept += words[:used].tolist()
            for piece in reversed(np.array_split(words[used:], pieces)):
                source.give_back(piece)

    assert kept == list(range(len(kept)))


@pytest.mark.parametrize("kind", FRESH)
def test_no_draw_uses_the_word_of_another(
    kind: type[Words] | type[KernelWords], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cuts look ahead and give back; what all draws of a session keep is one stretch of words in order."""
    monkeypatch.setattr("partita.trusted.noise.laws.entropy", _Numbers().entropy)
    source = _Watched(kind())
    noise, counts = SystemNoise(lambda: source).session(), Histogram.dense([40] * 200)
    for epsilon in ("1/2", 1, 2):
        Partition(size=200, epsilon=epsilon).cut(counts, noise=PartNoise(noise))
        noise.add(np.zeros(40, np.int64), Fraction(20))
    monkeypatch.setattr("partita.trusted.noise.laws.entropy", _Numbers().entropy)

    assert source.gave_back
    assert source.kept == kind().take(len(source.kept)).tolist()


class _Watched:
    """Passes words on and writes down those that were kept."""

    bits = 64

    def __init__(self, words: Words | KernelWords) -> None:
        self.words, self.kept, self.gave_back = words, list[int](), False

    def take(self, count: int) -> Any:
        words = self.words.take(count)
        self.kept += words.tolist()
        return words

    def take_up_to(self, count: int) -> Any:
        return self.take(count)

    def give_back(self, words: Any) -> None:
        self.gave_back |= words.size > 0
        assert self.kept[len(self.kept) - words.size :] == words.tolist()
        del self.kept[len(self.kept) - words.size :]
        self.words.give_back(words)


@pytest.mark.statistics(fresh=True)
@pytest.mark.parametrize("kind", FRESH)
def test_the_last_words_given_back_come_first(kind: Callable[[], Words]) -> None:
    """Ends given back one after another are joined again in the order of the stream."""
    source = kind()
    taken = source.take(9)
    source.give_back(taken[6:])
    source.give_back(taken[3:6])
    source.give_back(taken[9:])

    assert source.take(6).tolist() == taken[3:].tolist()


@pytest.mark.statistics(fresh=True)
@pytest.mark.parametrize("kind", FRESH)
def test_no_word_is_an_empty_array(kind: Callable[[], Words]) -> None:
    """Taking nothing gives nothing."""
    assert kind().take(0).shape == (0,)
    assert kind().take(0).dtype == np.uint64


@pytest.mark.parametrize("kind", FRESH)
@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, pickle.dumps, lambda words: pickle.dumps(words, protocol=0)]
)
def test_a_source_cannot_be_copied(kind: Callable[[], Words], duplicate: Callable[[Any], Any]) -> None:
    """Copying and pickling raise EntropyError, since two copies would give the same noise."""
    with pytest.raises(EntropyError, match="cannot be copied"):
        duplicate(kind())


@pytest.mark.parametrize("kind", FRESH)
def test_a_source_cannot_be_copied_inside_something_else(kind: Callable[[], Words]) -> None:
    """Neither can whatever holds it."""
    with pytest.raises(EntropyError, match="cannot be copied"):
        copy.deepcopy({"state": [kind()]})


@pytest.mark.parametrize("kind", FRESH)
def test_a_source_has_no_seed(kind: type[Words]) -> None:
    """Nothing can be passed in."""
    assert list(inspect.signature(kind).parameters) == []


def failing(count: int) -> bytes:
    raise OSError("the pool is gone")


def unsupported(count: int) -> bytes:
    raise NotImplementedError


@pytest.mark.parametrize("urandom", [failing, unsupported])
@pytest.mark.parametrize("noise", [SYSTEM, KERNEL], ids=["system", "kernel"])
def test_without_kernel_entropy_nothing_is_drawn(
    monkeypatch: pytest.MonkeyPatch, noise: SystemNoise, urandom: Callable[[int], bytes]
) -> None:
    """A failing kernel is an EntropyError with nothing chained to it."""
    monkeypatch.setattr(os, "urandom", urandom)

    with pytest.raises(EntropyError) as error:
        noise.discrete_laplace(1)

    assert error.value.__cause__ is None
    assert error.value.__suppress_context__


def test_a_cipher_is_keyed_by_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """32 bytes of key and 16 of nonce are asked for once, and a second source asks again."""
    asked: list[int] = []

    def count(size: int) -> bytes:
        asked.append(size)
        return bytes(size)

    monkeypatch.setattr(os, "urandom", count)
    source = Words()
    source.take(1000)
    source.take(1000)
    Words()

    assert asked == [32, 16, 32, 16]


def test_the_cipher_is_aes_256_in_counter_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the zero key and nonce the words are the published keystream: AES-256 of the block 0, 1, ..."""
    monkeypatch.setattr(os, "urandom", bytes)

    words = Words().take(2)

    assert words.tobytes().hex() == "dc95c078a2408989ad48a21492842087"


def test_kernel_words_are_the_bytes_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight bytes per word are asked for at the time of the draw, and nothing ahead of it."""
    asked: list[int] = []

    def count(size: int) -> bytes:
        asked.append(size)
        return bytes(range(size))

    monkeypatch.setattr(os, "urandom", count)
    source = KernelWords()
    assert asked == []

    assert source.take(2).tobytes() == bytes(range(16))
    assert source.take(1).tobytes() == bytes(range(8))
    assert asked == [16, 8]


def test_kernel_noise_asks_the_kernel_at_every_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each draw of KERNEL reads what it needs, and no key is made."""
    asked: list[int] = []

    def count(size: int) -> bytes:
        asked.append(size)
        return bytes([100]) * size

    monkeypatch.setattr(os, "urandom", count)
    KERNEL.discrete_laplace(1)
    KERNEL.discrete_laplace(1, 5)
    session = KERNEL.session()
    session.geometric(1)
    session.geometric(1)

    assert asked == [8, 40, 8, 8]


def test_only_kernel_entropy_is_secure() -> None:
    """SYSTEM, KERNEL and their sessions carry a guarantee; tapes never do."""
    for noise in (SYSTEM, KERNEL, SYSTEM.session(), KERNEL.session(), SYSTEM.session().session()):
        assert noise.secure
    for tape in (Tape([1, 2]), EndlessTape(1)):
        assert not tape_noise(tape).secure
        assert not tape_noise(tape).session().secure


def test_a_tape_is_read_in_order() -> None:
    """Words come as they were given, and what is given back comes again."""
    tape = Tape([5, 6, 7, 8])
    taken = tape.take(3)
    tape.give_back(taken[1:])

    assert (tape.used, tape.take(2).tolist(), tape.used) == (1, [6, 7], 3)


def test_a_tape_ends() -> None:
    """More words than are left are refused, and none is lost by asking."""
    tape = Tape([5, 6])
    with pytest.raises(TapeExhausted):
        tape.take(3)

    assert tape.take_up_to(3).tolist() == [5, 6]
    assert tape.take_up_to(3).tolist() == []
    with pytest.raises(TapeExhausted):
        tape.take(1)


def test_a_tape_holds_words_of_its_width() -> None:
    """A word of five bits does not fit on a tape of four."""
    with pytest.raises(InvalidParameter, match=r"must lie below 2\^4"):
        Tape([16], bits=4)

    assert Tape([15], bits=4).take(1).tolist() == [15]


def test_an_endless_tape_repeats_itself_by_seed() -> None:
    """The same seed gives the same words, across blocks, and another seed does not."""
    assert EndlessTape(1).take(9_000).tolist() == EndlessTape(1).take(9_000).tolist()
    assert EndlessTape(1).take(4).tolist() != EndlessTape(2).take(4).tolist()


def test_an_endless_tape_takes_words_back() -> None:
    """Words given back come again, and `used` counts those that were kept."""
    tape = EndlessTape(1)
    taken = tape.take(10)
    tape.give_back(taken[4:])

    assert tape.used == 4
    assert tape.take_up_to(6).tolist() == taken[4:].tolist()
