"""The draw of a cohort."""

import numpy as np

from strategies.members import draw_cohort


def test_a_draw_depends_on_seed_and_round_alone():
    ids = list(range(100))
    shuffled = np.random.default_rng(0).permutation(ids).tolist()
    assert draw_cohort(ids, 10, 5, 3) == draw_cohort(shuffled, 10, 5, 3)
    assert draw_cohort(ids, 10, 5, 3) != draw_cohort(ids, 10, 5, 4)
    assert draw_cohort(ids, 10, 5, 3) != draw_cohort(ids, 10, 6, 3)


def test_a_cohort_is_sorted_and_without_repeats():
    for round in range(50):
        cohort = draw_cohort(list(range(30)), 10, 0, round)
        assert cohort == sorted(set(cohort))
        assert len(cohort) == 10


def test_everyone_is_drawn_about_as_often():
    counts = np.zeros(20)
    for round in range(1, 2001):
        counts[draw_cohort(list(range(20)), 5, 0, round)] += 1
    assert abs(counts - 500).max() < 5 * np.sqrt(2000 * 0.25 * 0.75)


def test_the_draw_is_fixed_for_ever():
    assert draw_cohort(list(range(100)), 5, 0, 1) == [3, 52, 53, 79, 88]
    assert draw_cohort(list(range(7)), 3, 42, 9) == [0, 1, 2]
