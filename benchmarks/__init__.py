"""Benchmarks: one module each; every run leaves a file in `results`, from which docs/results.md is made."""
