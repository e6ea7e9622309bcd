"""The compressors: one scheme a file, one table of names."""

from fedsbc.compressors.base import Compressor, CompressorOptions, State

__all__ = ["Compressor", "CompressorOptions", "State"]
