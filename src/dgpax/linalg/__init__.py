"""Linear algebra that knows nothing of Gaussian processes."""

from ._cholesky import Cholesky as Cholesky
from ._cholesky import default_jitter as default_jitter
from ._cholesky import half_tril as half_tril
from ._cholesky import safe_cholesky as safe_cholesky
from ._cholesky import solve_cholesky as solve_cholesky
from ._cholesky import solve_lower as solve_lower
from ._cholesky import solve_lower_transposed as solve_lower_transposed
from ._operators import AbstractOperator as AbstractOperator
from ._operators import Blocks as Blocks
from ._operators import Dense as Dense
from ._operators import Diagonal as Diagonal
from ._operators import Kronecker as Kronecker
from ._operators import LowRankPlusDiagonal as LowRankPlusDiagonal
from ._precision import einsum as einsum
from ._precision import matmul as matmul
from ._quadrature import gauss_hermite as gauss_hermite
from ._quadrature import gaussian_expectation as gaussian_expectation
from ._roots import AbstractRoot as AbstractRoot
from ._roots import BlocksRoot as BlocksRoot
from ._roots import DiagonalRoot as DiagonalRoot
from ._roots import KroneckerRoot as KroneckerRoot
from ._roots import LowRankRoot as LowRankRoot
from ._roots import TriangularRoot as TriangularRoot
