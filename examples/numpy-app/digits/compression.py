"""How updates travel; the same on both sides."""

from fedsbc.app_config import app_config

CONFIG = app_config(clients=4, rounds=3, upstream={"name": "sbc", "density": 0.01})
