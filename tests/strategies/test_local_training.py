"""Local training between two rounds: steps or epochs, schedules, momentum that is kept."""

import pytest

from tests.experiments import play, small
from tests.local_grid import LocalGrid, SharingGrid

SCHEDULE = "clients.schedule={kind: step, milestones: [75, 160], decay: 0.5}"


def model_hash(*overrides):
    config = small("rounds=4", *overrides)
    return play(config, LocalGrid(config)).outcome.server.model_hash()


def test_an_epoch_is_so_many_steps():
    """500 samples in batches of 10: an epoch is 50 steps, for the schedule too."""
    epochs = model_hash("clients.local_steps=null", "clients.local_epochs=1", SCHEDULE)
    assert epochs == model_hash("clients.local_steps=50", SCHEDULE)
    assert epochs != model_hash("clients.local_steps=50")


def test_records_say_how_many_steps_epochs_were():
    config = small(
        "rounds=1", "clients.local_steps=null", "clients.local_epochs=2", "participation=0.5"
    )
    (record,) = play(config, LocalGrid(config)).outcome.records
    assert record.num_steps == 4 * 2 * 50


OPTIMIZERS = {
    "kept": "{name: sgd, lr: 0.05, momentum: 0.9, keep_momentum: true}",
    "reset": "{name: sgd, lr: 0.05, momentum: 0.9}",
    "masked": "{name: sgd, lr: 0.05, momentum: 0.9, keep_momentum: true, mask_momentum: true}",
    "adam": "{name: adam, lr: 0.01, keep_momentum: true, clip_norm: 1.0, weight_decay: 1e-4}",
}


def test_momentum_between_rounds_follows_the_config():
    hashes = {n: model_hash(f"clients.optimizer={o}") for n, o in OPTIMIZERS.items()}
    assert len(set(hashes.values())) == len(OPTIMIZERS)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_pitfall_17_momentum_is_the_clients_whoever_plays_it(tmp_path, name):
    config = small("rounds=4", "participation=0.5", f"clients.optimizer={OPTIMIZERS[name]}")
    runs = [
        play(config, LocalGrid(config)),
        play(config, SharingGrid(config, tmp_path, order=3)),
    ]
    assert len({run.outcome.server.model_hash() for run in runs}) == 1
