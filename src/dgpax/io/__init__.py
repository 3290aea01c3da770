"""Fitted models in files."""

from ._models import load_model as load_model
from ._models import save as save
from ._ranges import refuse_ranges as refuse_ranges
from ._registry import REGISTRY as REGISTRY
from ._table_model import TableModel as TableModel
