"""A config: one strict YAML file says everything about a run.

`load` reads it, `Config` is what it means, and `to_yaml` / `to_json` give it back resolved, with
every default written out. Components (compressors, models, data sets, partitions, optimisers,
schedules, networks) bring their own options classes; see `fedsbc.config.components`.
"""

from fedsbc.config.load import from_json, load, to_json, to_yaml
from fedsbc.config.schema import Config

__all__ = ["Config", "from_json", "load", "to_json", "to_yaml"]
