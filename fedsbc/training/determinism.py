"""What makes torch give the same bytes: one thread, and no choice of algorithm by the clock."""

import os

import torch

CUBLAS = ("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
"""cuBLAS repeats its sums only with a workspace of fixed size; it reads this when it starts."""


def make_deterministic(device: torch.device) -> None:
    """Set torch to one thread, and on a CUDA device to fixed algorithms in full float32.

    One and two threads sum in different orders and give different bytes. An operation for which
    torch has no deterministic kernel warns, and runs.
    """
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
    if device.type == "cuda":
        os.environ.setdefault(*CUBLAS)
        torch.use_deterministic_algorithms(True, warn_only=True)
        # Filling memory before it is written to costs time and changes nothing. torch sets this
        # attribute through a module class that mypy does not see.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_tf32 = False


def seed_torch(seed: int, device: torch.device) -> None:
    """Seed torch's global generator, and that of the device.

    `torch.manual_seed` would prepare a seed for each kind of accelerator there could be, which
    takes longer than a step of a small model.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)
