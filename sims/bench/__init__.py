"""Benchmarks: what things cost, always beside a yardstick taken in the same run."""
