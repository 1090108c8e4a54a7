"""The public names of the testing tools, each once."""

from partita.testing.doubles import EndlessTape as EndlessTape
from partita.testing.doubles import ForbiddenNoise as ForbiddenNoise
from partita.testing.doubles import RecordingNoise as RecordingNoise
from partita.testing.doubles import Scattered as Scattered
from partita.testing.doubles import ScatteredPoints as ScatteredPoints
from partita.testing.doubles import TapeLaw as TapeLaw
from partita.testing.doubles import ZeroNoise as ZeroNoise
from partita.testing.doubles import add_remove_pairs as add_remove_pairs
from partita.testing.doubles import change_one_pairs as change_one_pairs
from partita.testing.doubles import check_mechanism as check_mechanism
from partita.testing.doubles import data_sets as data_sets
from partita.testing.doubles import mechanisms as mechanisms
from partita.testing.doubles import tape_law as tape_law
from partita.testing.doubles import tape_noise as tape_noise
from partita.testing.laws import CouplingBroken as CouplingBroken
from partita.testing.laws import Loss as Loss
from partita.testing.laws import OutputLaw as OutputLaw
from partita.testing.laws import RationalNoise as RationalNoise
from partita.testing.laws import coupled as coupled
from partita.testing.laws import coupled_rho as coupled_rho
from partita.testing.laws import law as law
from partita.testing.laws import privacy_loss as privacy_loss
from partita.testing.replay import ReplayBroken as ReplayBroken
from partita.testing.replay import ReplayedLoss as ReplayedLoss
from partita.testing.replay import replay as replay
from partita.testing.replay import replay_publish as replay_publish
from partita.testing.replay import system_noise as system_noise

__all__: list[str]
