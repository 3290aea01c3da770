"""`python -m dgpax.cli`."""

from . import main

main()
