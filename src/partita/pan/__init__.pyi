"""The public names of pan-private sketches, each once."""

from partita.pan.bits import Density as Density
from partita.pan.bits import Distinct as Distinct
from partita.pan.file import SketchFile as SketchFile
from partita.pan.registers import RampRegisters as RampRegisters
from partita.pan.registers import Registers as Registers
from partita.pan.sketch import Sketch as Sketch
from partita.pan.sketch import shard_of as shard_of
from partita.pan.sketch import whole as whole

__all__: list[str]
