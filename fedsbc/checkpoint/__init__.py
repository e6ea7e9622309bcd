"""Checkpoints: everything that the next round reads, in generations of which one is always whole.

    checkpoint/
      round-000030/          a generation: the run after round 30
        manifest.json        sizes and sha256 of all other files; written last
        server.safetensors   weights, buffers, residual, compressor state, payloads sent
        server.json          run id, members, aborted rounds, config, versions
        ledger.parquet, rounds.jsonl
        clients/             one slot file per client: the newest state of round 30 or before
      round-000040/
      costs.jsonl            seconds and bytes of each checkpoint

A generation is built under a hidden name, flushed to the disk, and renamed; only then does the one
before the previous go. States that did not change are hard links into the previous generation.
`save` writes, `generations` finds, `read_snapshot` and `restore_states` bring it back, and
`plan_resume` says whether and from where a run can go on.
"""

from fedsbc.checkpoint.generation import Generation, generations
from fedsbc.checkpoint.resuming import Plan, begin_again, newest_whole, plan_resume
from fedsbc.checkpoint.snapshot import Snapshot, read_snapshot
from fedsbc.checkpoint.states import restore_states
from fedsbc.checkpoint.writing import Cost, Gather, save

__all__ = [
    "Cost",
    "Gather",
    "Generation",
    "Plan",
    "Snapshot",
    "begin_again",
    "generations",
    "newest_whole",
    "plan_resume",
    "read_snapshot",
    "restore_states",
    "save",
]
