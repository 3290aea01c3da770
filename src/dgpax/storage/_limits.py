"""How much of a file is believed before its parts are looked at. No fit of dgpax comes near these numbers."""

DEEPEST = 200
"""Values within values."""

MOST_ARRAYS = 20_000

MOST_AXES = 16
"""Of an array."""
