"""Tools that prove privacy by test. Only tests import them.

The shipped code is run with other noise in place of the system's: through every branch of an
exact rational law (`law`), on every short tape of words (`tape_law`), on a neighbour with the
noise that hides the difference (`coupled`), with the noise that releases the same again (`replay`,
`replay_publish`), with no noise at all (`ZeroNoise`), on counts that are
kept in many places (`Scattered`).
"""

from partita.testing.doubles import (
    EndlessTape,
    ForbiddenNoise,
    RecordingNoise,
    Scattered,
    ScatteredPoints,
    TapeLaw,
    ZeroNoise,
    add_remove_pairs,
    change_one_pairs,
    check_mechanism,
    data_sets,
    mechanisms,
    tape_law,
    tape_noise,
)
from partita.testing.laws import CouplingBroken, Loss, OutputLaw, RationalNoise, coupled, law, privacy_loss
from partita.testing.replay import ReplayBroken, ReplayedLoss, replay, replay_publish, system_noise

__all__ = [
    "CouplingBroken",
    "EndlessTape",
    "ForbiddenNoise",
    "Loss",
    "OutputLaw",
    "RationalNoise",
    "RecordingNoise",
    "ReplayBroken",
    "ReplayedLoss",
    "Scattered",
    "ScatteredPoints",
    "TapeLaw",
    "ZeroNoise",
    "add_remove_pairs",
    "change_one_pairs",
    "check_mechanism",
    "coupled",
    "data_sets",
    "law",
    "mechanisms",
    "privacy_loss",
    "replay",
    "replay_publish",
    "system_noise",
    "tape_law",
    "tape_noise",
]
