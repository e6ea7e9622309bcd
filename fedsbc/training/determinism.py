"""What makes torch give the same bytes: one thread, and no choice of algorithm by the clock."""

import torch


def make_deterministic(device: torch.device) -> None:
    """Set torch to one thread, and on a CUDA device to fixed algorithms in full float32.

    One and two threads sum in different orders and give different bytes.
    """
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
    if device.type == "cuda":
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_tf32 = False
