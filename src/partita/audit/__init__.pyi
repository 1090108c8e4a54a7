"""The public names of the auditor, each once."""

from partita.audit.attacks import ATTACKS as ATTACKS
from partita.audit.attacks import Attack as Attack
from partita.audit.attacks import SamplerFit as SamplerFit
from partita.audit.attacks import sampler_fits as sampler_fits
from partita.audit.base import Case as Case
from partita.audit.base import CaseCount as CaseCount
from partita.audit.base import public_mechanisms as public_mechanisms
from partita.audit.engine import Finding as Finding
from partita.audit.engine import Report as Report
from partita.audit.engine import audit as audit
from partita.audit.engine import enumerate_all as enumerate_all

__all__: list[str]
