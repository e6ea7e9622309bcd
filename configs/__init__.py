"""Experiments: YAML files, data only."""
