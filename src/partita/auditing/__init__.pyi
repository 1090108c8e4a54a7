"""The public names of the auditor, each once."""

from partita.auditing.attacks import ATTACKS as ATTACKS
from partita.auditing.attacks import Attack as Attack
from partita.auditing.case import Case as Case
from partita.auditing.case import CaseCount as CaseCount
from partita.auditing.discovery import public_mechanisms as public_mechanisms
from partita.auditing.engine import audit as audit
from partita.auditing.enumeration import enumerate_all as enumerate_all
from partita.auditing.fits import Fit as Fit
from partita.auditing.fits import sampler_fits as sampler_fits
from partita.auditing.report import Finding as Finding
from partita.auditing.report import Report as Report

__all__: list[str]
