"""The Flower ServerApp side: cohort, exchange, aggregation, ledger."""
