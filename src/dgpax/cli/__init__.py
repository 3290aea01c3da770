"""The command line: `dgpax fit` with no arguments runs on data that ships with the package. A file per command."""

from . import _about as _about
from . import _bench as _bench
from . import _compare as _compare
from . import _doctor as _doctor
from . import _fit as _fit
from . import _look as _look
from . import _predict as _predict
from . import _study as _study
from ._app import app as app
from ._app import main as main
