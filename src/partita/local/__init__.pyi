"""The public names of the local model, each once."""

from partita.local.aggregator import FrequencyAggregator as FrequencyAggregator
from partita.local.device import Device as Device
from partita.local.device import Report as Report
from partita.local.estimates import Frequencies as Frequencies
from partita.local.estimates import HeavyHitter as HeavyHitter
from partita.local.frequency import Frequency as Frequency
from partita.local.hadamard import HadamardResponse as HadamardResponse
from partita.local.hashing import LocalHashing as LocalHashing
from partita.local.law import LocalLaw as LocalLaw
from partita.local.learners import Logistic as Logistic
from partita.local.learners import Stump as Stump
from partita.local.learners import StumpTask as StumpTask
from partita.local.learners import learn_logistic as learn_logistic
from partita.local.learners_parity import parity_queries_needed as parity_queries_needed
from partita.local.learners_parity import parity_signal as parity_signal
from partita.local.learners_parity import parity_suspects as parity_suspects
from partita.local.mean import Mean as Mean
from partita.local.mean_aggregator import MeanAggregator as MeanAggregator
from partita.local.means import OneBit as OneBit
from partita.local.means import Piecewise as Piecewise
from partita.local.mixture import Mixture as Mixture
from partita.local.oracle import LROracle as LROracle
from partita.local.oracle_budgets import BudgetFile as BudgetFile
from partita.local.oracle_budgets import BudgetMemory as BudgetMemory
from partita.local.oracle_budgets import Budgets as Budgets
from partita.local.oracle_laws import ListedLaw as ListedLaw
from partita.local.projective import ProjectiveResponse as ProjectiveResponse
from partita.local.randomizer import FrequencyRandomizer as FrequencyRandomizer
from partita.local.randomizer import Randomizer as Randomizer
from partita.local.range_estimate import RangeAggregator as RangeAggregator
from partita.local.range_estimate import RangeEstimate as RangeEstimate
from partita.local.ranges import Range as Range
from partita.local.rectangle_estimate import RectangleAggregator as RectangleAggregator
from partita.local.rectangle_estimate import RectangleEstimate as RectangleEstimate
from partita.local.rectangles import Rectangles as Rectangles
from partita.local.registry import question_from as question_from
from partita.local.registry import randomizer_from as randomizer_from
from partita.local.response import RandomizedResponse as RandomizedResponse
from partita.local.statistical import SQAnswer as SQAnswer
from partita.local.statistical import SQOracle as SQOracle
from partita.local.unary import UnaryEncoding as UnaryEncoding

__all__: list[str]
