"""Values in files that can be trusted: structure as JSON, arrays as safetensors, a SHA-256 of every part.

A file is a safetensors file, so that other tools can read its arrays. Nothing in it is run or imported: a class can
only be one that the reader knows already.
"""

from ._file import FORMAT_VERSION as FORMAT_VERSION
from ._file import read as read
from ._file import write as write
from ._fingerprint import fingerprint as fingerprint
from ._names import Names as Names
from ._names import field_names as field_names
from ._names import is_record as is_record
from ._types import conforms as conforms
from ._values import is_plain as is_plain
