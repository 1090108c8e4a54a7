"""The report says what was tried, violations first; the command line ends as it should."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from partita import audit as auditing
from partita.audit import Report, audit
from partita.audit.attacks import AttackTrial, SamplerFit
from partita.audit.base import CaseCount
from partita.audit.custom import compare_samples, lowest_bit
from partita.audit.engine import AuditContext
from partita.cli import main
from partita.errors import InvalidParameter

from . import planted

PAIRS = [([0], [0, 1]), ([1], [1, 1])]
WHERE = AuditContext.here("some <library>", "quick", "partita audit")


def _report(*, violations: int = 0, p: float = 0.5, verdict: Any = "no violation found") -> Report:
    count = CaseCount(
        mechanism="Tree",
        about="4 cells",
        way="law",
        epsilon=Fraction(1, 3),
        pairs=7,
        loss=float("inf") if violations else 0.25,
        violations=violations,
    )
    trial = AttackTrial(attack="infinity", mechanism="Tree", verdict=verdict, tried=3, said="it shows")
    fits = (SamplerFit(sampler="coin", draws=10, events=1, p=p),)
    return Report(surroundings=WHERE, counts=(count,), fits=fits, trials=(trial,))


def test_nothing_found_is_not_called_private() -> None:
    """The verdict is what was not found, with what was tried, and what that does not show."""
    text = _report().text()

    assert "NO VIOLATION FOUND" in text
    assert "7 pairs of neighbours; 1 fits of 10 draws; 3 inputs of 1 attacks" in text
    assert "WHAT THIS DOES NOT SHOW" in text
    assert "3 inputs, found in 0 mechanisms" in " ".join(text.split())
    assert "WeightsSession" in text
    assert "is private" not in text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"violations": 2}, "2 of 7 pairs lose more than epsilon 1/3"),
        ({"p": 1e-9}, "10 draws do not fit the law"),
        ({"verdict": "violation"}, "infinity: it shows"),
    ],
)
def test_every_part_can_fail_and_violations_come_first(changes: dict[str, Any], said: str) -> None:
    """A pair, a fit or an attack."""
    report = _report(**changes)
    lines = report.text().splitlines()

    assert report.verdict == "VIOLATIONS FOUND: 1"
    assert any(said in " ".join(lines[place : place + 2]) for place in range(9))
    assert json.loads(json.dumps(report.record()))["violations"]


def test_the_page_is_escaped_and_loads_nothing() -> None:
    """No script, no address, and names are text."""
    page = _report().html()

    assert "some &lt;library&gt;" in page
    assert "<script" not in page
    assert "http" not in page


@pytest.mark.parametrize(
    ("mechanism", "part"),
    [
        (planted.half_the_scale, "enumeration"),
        (planted.bare_zeros, "enumeration"),
        (planted.loaded_coin, "enumeration"),
    ],
)
def test_somebody_elses_bug_is_found(mechanism: Any, part: str) -> None:
    """By coupling where it holds, and else by the enumerated law."""
    report = audit(mechanism, neighbours=PAIRS, epsilon=1, depth="quick", draws=200)

    assert part in {finding.part for finding in report.violations}


def test_somebody_elses_right_mechanism_passes() -> None:
    """All of epsilon is lost and no more, and what does not apply says why."""
    report = audit(planted.right, neighbours=PAIRS, epsilon=1, depth="quick", draws=200)

    assert report.violations == []
    assert [count.loss for count in report.counts] == [1.0]
    assert all(trial.said for trial in report.trials if trial.verdict == "does not apply")


def _halved_then_wide(rows: Any, noise: Any) -> object:
    """Half a scale on few rows; on more of them so many numbers that nothing can be enumerated."""
    looks = [len(rows)] * (5 + len(rows)) if len(rows) > 1 else [len(rows)]
    return noise.add(looks, Fraction(1, 2) if len(rows) < 2 else Fraction(50))


def test_pairs_that_cannot_be_proved_hide_no_others() -> None:
    """What is known of some pairs is told, and of how many nothing is."""
    pairs = [([], [0]), ([0, 0], [0, 0, 0])]
    report = audit(_halved_then_wide, neighbours=pairs, epsilon=1, depth="quick", draws=50)

    assert [(count.pairs, count.violations) for count in report.counts] == [(1, 1)]
    assert "of 1 of 2 pairs the loss could be neither coupled nor enumerated" in " ".join(report.notes)


def _refuses_two(rows: Any, noise: Any) -> int:
    if len(rows) > 1:
        raise ValueError(f"two are too many: {rows}")
    return int(noise.add(len(rows), Fraction(1)))


def test_a_refusal_is_an_output_and_its_text_is_not_shown() -> None:
    """Who raises on one of two neighbours tells them apart; who raises on all cannot be audited."""
    report = audit(_refuses_two, neighbours=[([7], [7, 987654321])], epsilon=1, depth="quick", draws=500)

    assert "samples" in {finding.part for finding in report.violations}
    assert "987654321" not in report.text()
    with pytest.raises(InvalidParameter, match="must run on the neighbours") as refusal:
        audit(_refuses_two, neighbours=[([1, 2], [1, 987654321])], epsilon=1)
    assert "987654321" not in str(refusal.value)


def test_what_is_asked_for_must_make_sense() -> None:
    """Unknown names, missing promises, no pairs and what cannot be run are refused."""
    asked: list[dict[str, Any]] = [
        {"only": ["Trie"]},
        {"mine": planted.right},
        {"mine": planted.right, "epsilon": 1, "neighbours": []},
        {"mine": 5, "epsilon": 1},
    ]
    for given in asked:
        with pytest.raises(InvalidParameter):
            audit(**given)


def _float_laplace(seed: int) -> Any:
    generator = np.random.default_rng(seed)
    return lambda rows: sum(rows) + generator.laplace(scale=2.0)


def test_noise_of_floats_is_found_by_its_last_bits() -> None:
    """Laplace noise as textbooks have it, of the right scale: the lowest bit tells neighbours apart."""
    found = compare_samples(
        _float_laplace(1), [0], [0, 1], epsilon=0.5, draws=25_000, mechanism="naive", about="a pair"
    )

    assert found.violated
    assert "multiple of 2^-5" in found.event


def test_rounded_noise_of_the_right_scale_is_not_accused() -> None:
    """The same samples as integers on a grid of whole numbers keep their promise."""
    drawn = np.random.default_rng(1)
    ratio = 1 - np.exp(-1.0)

    def rounded(rows: list[int]) -> int:
        return sum(rows) + int(drawn.geometric(ratio)) - int(drawn.geometric(ratio))

    found = compare_samples(rounded, [0], [0, 1], epsilon=1.0, draws=20_000, mechanism="good", about="a pair")

    assert 0.5 < found.loss <= 1


def test_lowest_bits_are_exact() -> None:
    """Of the smallest and of large floats."""
    values = np.array([5e-324, 0.75, 3.0, 2.0**60, 0.0, np.nan])

    assert lowest_bit(values).tolist() == [-1074, -2, 0, 60, 2000, 2000]


def test_the_command_reports_and_ends_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As text, as JSON and as a page; exit code 0 where nothing was found."""
    page = tmp_path / "audit.html"

    assert main(["audit", "--depth", "quick", "--only", "OneBit", "--html", str(page)]) == 0
    assert "NO VIOLATION FOUND" in capsys.readouterr().out
    assert "NO VIOLATION FOUND" in page.read_text()
    assert main(["audit", "--depth", "quick", "--only", "OneBit", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"] == 4


def test_a_violation_ends_with_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mechanism of somebody's own, found in the folder; and an error where there is none."""
    (tmp_path / "wrong_noise.py").write_text(
        "from fractions import Fraction\n"
        "def half(epsilon):\n"
        "    def counted(rows, noise):\n"
        "        return int(noise.add(len(rows), Fraction(1, 2) / epsilon))\n"
        "    counted.neighbours = [([0], [0, 1])]\n"
        "    return counted\n"
    )
    monkeypatch.chdir(tmp_path)

    assert main(["audit", "--depth", "quick", "--mechanism", "wrong_noise:half", "--epsilon", "1"]) == 1
    assert "pairs lose more than epsilon 1, up to 2" in " ".join(capsys.readouterr().out.split())
    assert main(["audit", "--mechanism", "wrong_noise:third"]) == 1
    assert "must name a module" in capsys.readouterr().err
    assert main(["audit", "--mechanism", "wrong_noise:Fraction", "--only", "Tree"]) == 2
    assert main(["audit", "--depth", "quick", "--epsilon", "1"]) == 2
    assert main(["audit", "--mechanism", "wrong_noise:__name__"]) == 1
    assert "must name a function that makes it" in capsys.readouterr().err


def test_every_public_name_is_what_it_says() -> None:
    """Names load when they are first used, and no module stands in the way of one."""
    for name in auditing.__all__:
        assert not isinstance(getattr(auditing, name), ModuleType)
    assert dir(auditing) == sorted(auditing.__all__)
