"""How to run: the Ray grid, the command line, benchmarks, sweeps."""
