"""The public names of the noise, each once."""

from partita.noise.hazard import FirstSuccess as FirstSuccess
from partita.noise.hazard import Law as Law
from partita.noise.protocol import IntegerArray as IntegerArray
from partita.noise.protocol import Noise as Noise
from partita.noise.system import KERNEL as KERNEL
from partita.noise.system import SYSTEM as SYSTEM
from partita.noise.system import SystemNoise as SystemNoise
from partita.noise.system import add as add
from partita.noise.system import bernoulli as bernoulli
from partita.noise.system import categorical as categorical
from partita.noise.system import discrete_laplace as discrete_laplace
from partita.noise.system import discrete_laplace_units as discrete_laplace_units
from partita.noise.system import exponential as exponential
from partita.noise.system import first_success as first_success
from partita.noise.system import geometric as geometric
from partita.noise.words import KernelWords as KernelWords
from partita.noise.words import Tape as Tape
from partita.noise.words import Words as Words
from partita.noise.words import WordSource as WordSource

__all__: list[str]
