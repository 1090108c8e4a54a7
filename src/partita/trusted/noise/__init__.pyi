"""The public names of the noise, each once."""

from partita.trusted.noise.hazard import FirstSuccess as FirstSuccess
from partita.trusted.noise.hazard import Law as Law
from partita.trusted.noise.laws import IntegerArray as IntegerArray
from partita.trusted.noise.laws import KernelWords as KernelWords
from partita.trusted.noise.laws import Tape as Tape
from partita.trusted.noise.laws import Words as Words
from partita.trusted.noise.laws import WordSource as WordSource
from partita.trusted.noise.system import KERNEL as KERNEL
from partita.trusted.noise.system import SYSTEM as SYSTEM
from partita.trusted.noise.system import Noise as Noise
from partita.trusted.noise.system import SystemNoise as SystemNoise
from partita.trusted.noise.system import add as add
from partita.trusted.noise.system import add_gaussian as add_gaussian
from partita.trusted.noise.system import bernoulli as bernoulli
from partita.trusted.noise.system import categorical as categorical
from partita.trusted.noise.system import discrete_gaussian as discrete_gaussian
from partita.trusted.noise.system import discrete_laplace as discrete_laplace
from partita.trusted.noise.system import discrete_laplace_units as discrete_laplace_units
from partita.trusted.noise.system import exponential as exponential
from partita.trusted.noise.system import first_success as first_success
from partita.trusted.noise.system import geometric as geometric

__all__: list[str]
