"""The public names of the local model, each once."""

from partita.local.aggregate.aggregator import FrequencyAggregator as FrequencyAggregator
from partita.local.device import Device as Device
from partita.local.device import Report as Report
from partita.local.encodings.hadamard import HadamardResponse as HadamardResponse
from partita.local.encodings.hashing import LocalHashing as LocalHashing
from partita.local.encodings.means import OneBit as OneBit
from partita.local.encodings.means import Piecewise as Piecewise
from partita.local.encodings.projective import ProjectiveResponse as ProjectiveResponse
from partita.local.estimates.estimates import Frequencies as Frequencies
from partita.local.estimates.estimates import HeavyHitter as HeavyHitter
from partita.local.frequency.frequency import Frequency as Frequency
from partita.local.frequency.mixture import Mixture as Mixture
from partita.local.learners.learners import Logistic as Logistic
from partita.local.learners.learners import Stump as Stump
from partita.local.learners.learners import StumpTask as StumpTask
from partita.local.learners.learners import learn_logistic as learn_logistic
from partita.local.learners.learners_parity import parity_queries_needed as parity_queries_needed
from partita.local.learners.learners_parity import parity_signal as parity_signal
from partita.local.learners.learners_parity import parity_suspects as parity_suspects
from partita.local.learners.statistical import SQAnswer as SQAnswer
from partita.local.learners.statistical import SQOracle as SQOracle
from partita.local.mean.mean import Mean as Mean
from partita.local.mean.mean_aggregator import MeanAggregator as MeanAggregator
from partita.local.oracle.oracle import LROracle as LROracle
from partita.local.oracle.oracle_budgets import BudgetFile as BudgetFile
from partita.local.oracle.oracle_budgets import BudgetMemory as BudgetMemory
from partita.local.oracle.oracle_budgets import Budgets as Budgets
from partita.local.oracle.oracle_laws import ListedLaw as ListedLaw
from partita.local.question.registry import question_from as question_from
from partita.local.question.registry import randomizer_from as randomizer_from
from partita.local.randomizer.law import LocalLaw as LocalLaw
from partita.local.randomizer.randomizer import FrequencyRandomizer as FrequencyRandomizer
from partita.local.randomizer.randomizer import Randomizer as Randomizer
from partita.local.randomizer.response import RandomizedResponse as RandomizedResponse
from partita.local.randomizer.unary import UnaryEncoding as UnaryEncoding
from partita.local.ranges.range_estimate import RangeAggregator as RangeAggregator
from partita.local.ranges.range_estimate import RangeEstimate as RangeEstimate
from partita.local.ranges.ranges import Range as Range
from partita.local.ranges.rectangle_estimate import RectangleAggregator as RectangleAggregator
from partita.local.ranges.rectangle_estimate import RectangleEstimate as RectangleEstimate
from partita.local.ranges.rectangles import Rectangles as Rectangles

__all__: list[str]
