"""Dispatch tables for pairs of (inducing variable, kernel)."""

from ._rules import Kuf as Kuf
from ._rules import Kuu as Kuu
from ._table import RuleTable as RuleTable
