"""Checks of the machine, each of which ends in OK, WARN or FAIL and says what to do.

Standard library only, and every import of something else happens in a process of its own: a
doctor must not fall ill with the patient.
"""

from cards_bringup.doctor.finding import Finding, Status
from cards_bringup.doctor.report import examine

__all__ = ["Finding", "Status", "examine"]
