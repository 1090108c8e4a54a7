"""The public names of the auditor, each once."""

from partita.audit.attacks.attacks import ATTACKS as ATTACKS
from partita.audit.attacks.attacks import Attack as Attack
from partita.audit.attacks.fits import Fit as Fit
from partita.audit.attacks.fits import sampler_fits as sampler_fits
from partita.audit.base.case import Case as Case
from partita.audit.base.case import CaseCount as CaseCount
from partita.audit.base.discovery import public_mechanisms as public_mechanisms
from partita.audit.engine.engine import audit as audit
from partita.audit.engine.enumeration import enumerate_all as enumerate_all
from partita.audit.engine.report import Finding as Finding
from partita.audit.engine.report import Report as Report

__all__: list[str]
