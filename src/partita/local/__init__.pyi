"""The public names of the local model, each once."""

from partita.local.aggregate import Frequencies as Frequencies
from partita.local.aggregate import FrequencyAggregator as FrequencyAggregator
from partita.local.aggregate import HeavyHitter as HeavyHitter
from partita.local.aggregate import MeanAggregator as MeanAggregator
from partita.local.device import Device as Device
from partita.local.device import Report as Report
from partita.local.encodings import HadamardResponse as HadamardResponse
from partita.local.encodings import LocalHashing as LocalHashing
from partita.local.encodings import OneBit as OneBit
from partita.local.encodings import Piecewise as Piecewise
from partita.local.encodings import ProjectiveResponse as ProjectiveResponse
from partita.local.learners import Logistic as Logistic
from partita.local.learners import SQAnswer as SQAnswer
from partita.local.learners import SQOracle as SQOracle
from partita.local.learners import Stump as Stump
from partita.local.learners import StumpTask as StumpTask
from partita.local.learners import learn_logistic as learn_logistic
from partita.local.learners import parity_queries_needed as parity_queries_needed
from partita.local.learners import parity_signal as parity_signal
from partita.local.learners import parity_suspects as parity_suspects
from partita.local.oracle import BudgetFile as BudgetFile
from partita.local.oracle import BudgetMemory as BudgetMemory
from partita.local.oracle import Budgets as Budgets
from partita.local.oracle import ListedLaw as ListedLaw
from partita.local.oracle import LROracle as LROracle
from partita.local.question import Frequency as Frequency
from partita.local.question import Mean as Mean
from partita.local.question import question_from as question_from
from partita.local.question import randomizer_from as randomizer_from
from partita.local.randomizer import FrequencyRandomizer as FrequencyRandomizer
from partita.local.randomizer import LocalLaw as LocalLaw
from partita.local.randomizer import RandomizedResponse as RandomizedResponse
from partita.local.randomizer import Randomizer as Randomizer
from partita.local.randomizer import UnaryEncoding as UnaryEncoding
from partita.local.range_estimates import RangeAggregator as RangeAggregator
from partita.local.range_estimates import RangeEstimate as RangeEstimate
from partita.local.range_estimates import RectangleAggregator as RectangleAggregator
from partita.local.range_estimates import RectangleEstimate as RectangleEstimate
from partita.local.ranges import Mixture as Mixture
from partita.local.ranges import Range as Range
from partita.local.ranges import Rectangles as Rectangles

__all__: list[str]
