"""Fits in other libraries. Each adapter is a module of its own, imported by whoever has the library:
`from dgpax.interop.botorch import as_model`."""
