"""The public names of pan-private sketches, each once."""

from partita.pan.bits.density import Density as Density
from partita.pan.bits.distinct import Distinct as Distinct
from partita.pan.file import SketchFile as SketchFile
from partita.pan.registers.ramp_registers import RampRegisters as RampRegisters
from partita.pan.registers.registers import Registers as Registers
from partita.pan.sketch.sharding import shard_of as shard_of
from partita.pan.sketch.sharding import whole as whole
from partita.pan.sketch.sketch import Sketch as Sketch

__all__: list[str]
