"""Rows that don't fit into memory: sources, one pass over them, and the feed that reads blocks ahead."""

from ._source import RowSource as RowSource
from ._stream import Streamed as Streamed
from ._stream import stream as stream
