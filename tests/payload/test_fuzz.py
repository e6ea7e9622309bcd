from tests.payload.fuzz import run


def test_random_and_mutated_payloads() -> None:
    tally = run(20_000, seed=1)
    assert tally.count == 20_000
    assert tally.accepted > 1000
    assert len(tally.refused) > 10
    assert tally.growth_bytes < 64 * 2**20
