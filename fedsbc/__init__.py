"""fedsbc: communication-efficient federated learning on Flower, every bit real and counted.

The core package holds what is pure: compressors, coding, ledger, models, data, training,
reports. It imports neither Flower nor Ray; `fedsbc.message` is the one door to Flower.
"""

__version__ = "0.1.0"
