"""Tools that prove privacy by test. Only tests import them.

The shipped code is run with other noise in place of the system's: through every branch of an
exact rational law (`law`), on every short tape of words (`tape_law`), on a neighbour with the
noise that hides the difference (`coupled`), with the noise that releases the same again (`replay`,
`replay_publish`), with no noise at all (`ZeroNoise`), on counts that are
kept in many places (`Scattered`).
"""

from partita.testing.doubles.doubles import ForbiddenNoise, RecordingNoise, ZeroNoise
from partita.testing.doubles.neighbors import add_remove_pairs, change_one_pairs, data_sets
from partita.testing.doubles.scattered import Scattered, ScatteredPoints
from partita.testing.doubles.suite import check_mechanism, mechanisms
from partita.testing.doubles.tapes import EndlessTape, TapeLaw, tape_law, tape_noise
from partita.testing.laws.coupling import CouplingBroken, coupled
from partita.testing.laws.loss import Loss, privacy_loss
from partita.testing.laws.rational import OutputLaw, RationalNoise, law
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
