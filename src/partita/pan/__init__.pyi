"""The public names of pan-private sketches, each once."""

from partita.pan.density import Density as Density
from partita.pan.distinct import Distinct as Distinct
from partita.pan.ramp_registers import RampRegisters as RampRegisters
from partita.pan.registers import Registers as Registers
from partita.pan.sharding import shard_of as shard_of
from partita.pan.sharding import whole as whole
from partita.pan.sketch import Sketch as Sketch
from partita.pan.sketch_file import SketchFile as SketchFile

__all__: list[str]
