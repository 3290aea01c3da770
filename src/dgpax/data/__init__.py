"""Data: checking, scaling, minibatches, and a catalogue of named sets.

`dataset` turns what the user has into a `Dataset`; `standardise` gives the `Scaling` that travels with a model;
`minibatch` draws the batch of a step; `load` knows public datasets by name; `read_table` reads a
table from a file as a person would.
"""

from ._arrays import as_numpy as as_numpy
from ._arrays import is_sparse as is_sparse
from ._arrays import missing_entries as missing_entries
from ._arrays import numbers_of as numbers_of
from ._arrays import refuse_units as refuse_units
from ._catalogue import Catalogue as Catalogue
from ._catalogue import CatalogueRow as CatalogueRow
from ._catalogue import NamedDataset as NamedDataset
from ._catalogue import catalogue as catalogue
from ._catalogue import data_folder as data_folder
from ._catalogue import load as load
from ._catalogue import names as names
from ._dataset import Dataset as Dataset
from ._dataset import dataset as dataset
from ._dataset import outputs_only as outputs_only
from ._encoding import CategoryColumn as CategoryColumn
from ._encoding import Encoding as Encoding
from ._encoding import NumberColumn as NumberColumn
from ._feed import AbstractFeed as AbstractFeed
from ._feed import InMemory as InMemory
from ._feed import as_feed as as_feed
from ._frames import is_frame as is_frame
from ._minibatch import batch_indices as batch_indices
from ._minibatch import minibatch as minibatch
from ._minibatch import split as split
from ._scaling import Scaling as Scaling
from ._scaling import constant_columns as constant_columns
from ._scaling import identity_scaling as identity_scaling
from ._scaling import standardise as standardise
from ._scaling import standardise_inputs as standardise_inputs
from ._sums import aligned as aligned
from ._sums import sum_over_rows as sum_over_rows
from ._validation import check_inputs as check_inputs
from ._validation import read_outputs as read_outputs
from ._validation import read_weights as read_weights
from .reading import Table as Table
from .reading import TableColumn as TableColumn
from .reading import Written as Written
from .reading import read_table as read_table
from .streams import RowSource as RowSource
from .streams import Streamed as Streamed
from .streams import stream as stream
