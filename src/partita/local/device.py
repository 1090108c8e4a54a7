"""A person's side of the local model: it trusts nobody, and remembers its answers.

It needs the standard library only, for questions about cells, labels, whole numbers and means; other domains
need NumPy. The server cannot make a device lose more than its owner allowed: a question's threshold is
verified from its kind, epsilon and domain, a question gets the same answer again, and the budget of a
lifetime is stored here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Self, final

from partita.errors import (
    BudgetExceeded,
    InvalidData,
    InvalidParameter,
    InvalidState,
    check,
    check_arguments,
    check_type,
)
from partita.local.question import Question, parse_question, question_from
from partita.numbers import rational
from partita.trusted.noise.kernel import token

_VERSION: Final = 1
_ID_BYTES: Final = 16
_DIGEST_BYTES: Final = 32
_PRIVATE: Final = 0o600
_LARGEST_FILE: Final = 1 << 26
_MADE: Final = b"made\n"  # written to the lock file: a device that loses its file must not start over


@final
@dataclass(frozen=True)
class Report:
    """What leaves a device: the digest of the question and its round, a number, and a random id.

    The id is drawn with the answer and sent with it each time, so that a report is counted once.
    """

    question: str
    value: int
    id: str

    def to_json(self) -> dict[str, Any]:
        """As a small JSON object."""
        return {"question": self.question, "report": f"{self.value:x}", "id": self.id}

    def to_bytes(self) -> bytes:
        """The digest, the id, and the number, lowest byte first."""
        length = max(1, (self.value.bit_length() + 7) // 8)
        return bytes.fromhex(self.question) + bytes.fromhex(self.id) + self.value.to_bytes(length, "little")

    @classmethod
    def from_json(cls, given: object) -> Self:
        """The report that `to_json` wrote; whether it fits its question is for the aggregator to say."""
        if not isinstance(given, dict) or set(given) != {"question", "report", "id"}:
            raise _report_error()
        question, value, id = (given[key] for key in ("question", "report", "id"))
        if not (_hex(question, 2 * _DIGEST_BYTES) and _hex(id, 2 * _ID_BYTES) and _hex(value, None)):
            raise _report_error()
        return cls(question, int(value, 16), id)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The report that `to_bytes` wrote."""
        head = _DIGEST_BYTES + _ID_BYTES
        if len(data) <= head:
            raise _report_error()
        digest, id = data[:_DIGEST_BYTES].hex(), data[_DIGEST_BYTES:head].hex()
        return cls(digest, int.from_bytes(data[head:], "little"), id)


@final
@check_arguments
class Device:
    """Answers questions out of a budget that its owner set, and stores a report before it is sent.

    The file holds the budget and the reports with their epsilons: nothing that was not sent. The same
    question in the same round gets the same report for ever, whatever the person's value has become; it costs
    epsilon once. A question that would cost more than is left is refused. The file is written when the device
    is made; if it is gone later, that is an error, and no budget is given anew.
    """

    def __init__(self, path: str | os.PathLike[str], *, budget: object) -> None:
        rule, fix = "must be the path of a file", 'pass for example "answers.state"'
        self._path = os.fspath(check_type(path, (str, os.PathLike), "path", rule, fix=fix))
        self.budget = rational(budget, "budget")
        check(self.budget > 0, "budget", "must be positive", given=budget, fix="pass for example 4")
        with self._lock() as lock:
            if not (os.path.lexists(self._path) or os.fstat(lock).st_size):
                self._store({})
            self._load()
            os.write(lock, _MADE)

    @property
    def spent(self) -> Fraction:
        """The sum of the epsilons of all answers."""
        return _sum_spent(self._load())

    @property
    def left(self) -> Fraction:
        """What is left of the budget."""
        return self.budget - self.spent

    @staticmethod
    def verify(description: object) -> Question:
        """The question, read from what a server sent; its `epsilon` is verified by integer arithmetic.

        Refused with a typed error if the threshold is not the one that kind, domain and epsilon give, or if
        anything else is not as it should be.
        """
        if isinstance(description, str | bytes):
            return parse_question(description)
        return question_from(description)

    def answer(self, question: Question, value: object, *, name: str | None = None) -> Report:
        """The report on this person's value; `name` is that of a round, in place of the question's own.

        The round is part of what the report says that it answers: an aggregator of `question.in_round(name)`
        counts it, and no other. The epsilon is charged and the report is on the disk before it is returned.
        """
        asked = question if name is None else question.in_round(name)
        with self._lock():
            memo = self._load()
            if asked.digest not in memo:
                self._afford(asked, memo)
                report = Report(asked.digest, asked.randomize(value), token(_ID_BYTES))
                memo[asked.digest] = {"epsilon": str(asked.epsilon), **report.to_json()}
                self._store(memo)
            return _report_of(memo[asked.digest])

    def _afford(self, question: Question, memo: dict[str, Any]) -> None:
        left = self.budget - _sum_spent(memo)
        if question.epsilon > left:
            raise BudgetExceeded(
                f"the question costs epsilon {question.epsilon}, and this device has {left} left; "
                "do not answer it"
            )

    def _load(self) -> dict[str, Any]:
        """All answers, by question; to start over without a file would give its budget again."""
        try:
            with open(self._path, "rb") as file:
                text = file.read(_LARGEST_FILE + 1)
        except FileNotFoundError:
            rule = "file is gone, though its lock says that it was made"
            fix = "put it back, or answer no more; its owner may remove the lock to grant a new budget"
            raise InvalidState("device", rule, fix=fix) from None
        state = _parse(text)
        if state["budget"] != str(self.budget):
            rule = f"must be {state['budget'][:60]}, as in the file"
            raise InvalidParameter("budget", rule, given=self.budget, fix="pass that")
        memo: dict[str, Any] = state["memo"]
        return memo

    def _store(self, memo: dict[str, Any]) -> None:
        """Write a new file beside the old one, to the disk, and put it in its place."""
        beside = f"{self._path}.{token(8)}"
        text = json.dumps({"version": _VERSION, "budget": str(self.budget), "memo": memo})
        try:
            with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE), "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self._path)
            _sync_folder(self._path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(beside)

    @contextmanager
    def _lock(self) -> Iterator[int]:
        """One process at a time, where the system has locks for files. The lock says that a file was made."""
        lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT, _PRIVATE)
        try:
            with suppress(ImportError):
                import fcntl

                fcntl.flock(lock, fcntl.LOCK_EX)
            yield lock
        finally:
            os.close(lock)


def _sync_folder(path: str) -> None:
    """Put a new name on the disk, where folders can be: no power cut may undo an answer."""
    with suppress(PermissionError, IsADirectoryError):
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _sum_spent(memo: dict[str, Any]) -> Fraction:
    return sum((Fraction(said["epsilon"]) for said in memo.values()), Fraction(0))


def _report_of(entry: dict[str, Any]) -> Report:
    return Report.from_json({key: entry[key] for key in ("question", "report", "id")})


def _parse(text: bytes) -> dict[str, Any]:
    """The content of a file, checked: to go on from a damaged one could spend the budget twice."""
    try:
        state: Any = json.loads(text) if len(text) <= _LARGEST_FILE else None
        sound = set(state) == {"version", "budget", "memo"} and state["version"] == _VERSION
        sound = sound and isinstance(state["budget"], str)
        reports = [(_report_of(entry), entry["epsilon"]) for entry in state["memo"].values()]
        sound = sound and all(rational(price, "epsilon") > 0 for _, price in reports)
        sound = sound and rational(state["budget"], "budget") > 0
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        sound = False
    if not sound:
        raise InvalidState("device", "file is damaged", fix="do not answer any more with this device")
    checked: dict[str, Any] = state
    return checked


def _hex(text: object, length: int | None) -> bool:
    """Whether it is lower-case hexadecimal, of a given length if there is one."""
    if not isinstance(text, str) or not text or set(text) - set("0123456789abcdef"):
        return False
    return length is None or len(text) == length


def _report_error() -> InvalidData:
    return InvalidData("report", "must hold a question, a report and an id, in hexadecimal", fix="drop it")
