"""The public names of the noise, each once."""

from partita.trusted.noise.hazard.hazard import FirstSuccess as FirstSuccess
from partita.trusted.noise.hazard.hazard import Law as Law
from partita.trusted.noise.laws.words import KernelWords as KernelWords
from partita.trusted.noise.laws.words import Tape as Tape
from partita.trusted.noise.laws.words import Words as Words
from partita.trusted.noise.laws.words import WordSource as WordSource
from partita.trusted.noise.system.protocol import IntegerArray as IntegerArray
from partita.trusted.noise.system.protocol import Noise as Noise
from partita.trusted.noise.system.system import KERNEL as KERNEL
from partita.trusted.noise.system.system import SYSTEM as SYSTEM
from partita.trusted.noise.system.system import SystemNoise as SystemNoise
from partita.trusted.noise.system.system import add as add
from partita.trusted.noise.system.system import bernoulli as bernoulli
from partita.trusted.noise.system.system import categorical as categorical
from partita.trusted.noise.system.system import discrete_laplace as discrete_laplace
from partita.trusted.noise.system.system import discrete_laplace_units as discrete_laplace_units
from partita.trusted.noise.system.system import exponential as exponential
from partita.trusted.noise.system.system import first_success as first_success
from partita.trusted.noise.system.system import geometric as geometric

__all__: list[str]
