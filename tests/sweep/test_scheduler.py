"""The simulation of sweeps, which drives the real loop, on cases whose answers are known."""

import pytest

from benchmarks.scheduler import LONGEST_FIRST, SEED_BY_SEED, Length, Simulated, World, drawn_lengths, simulated
from maxplore.sweep import running


def equal(count: int, seconds: float = 1000.0) -> dict[str, Length]:
    return {f"trial-{k}": Length(seconds, 1000) for k in range(count)}


def near(seconds: float, looks: int = 5) -> object:
    """A few looks of the loop later, at the most."""
    return pytest.approx(seconds / 3600, abs=looks * running.LOOK / 3600)


def test_four_equal_trials_on_two_workers_take_twice_as_long_as_one():
    found = simulated(World(workers=2), equal(4), 0)
    assert found["hours"] == near(2000)
    assert found["over_least"] == pytest.approx(1, abs=1e-3)
    assert found["starting"] == found["again"] == found["losses"] == 0
    assert found["idle"] == pytest.approx(0, abs=1e-3)


def test_what_happens_after_the_last_trial_does_not_count():
    found = simulated(World(workers=2, mtbf=1e9), equal(4), 0)
    assert found["hours"] == near(2000)


def test_a_start_costs_its_time():
    found = simulated(World(workers=2, start=100.0), equal(4), 0)
    assert found["hours"] == near(2200)
    assert found["starting"] == pytest.approx(100 / 1100)


class FailsOnce(Simulated):
    """One node, which fails at a time that is known, once."""

    def _life(self) -> float:
        return float("inf") if hasattr(self, "events") else 700.0


@pytest.mark.parametrize(("resumes", "extra"), [(True, 200.0), (False, 700.0)])
def test_a_failure_costs_what_is_lost_and_the_repair(monkeypatch, resumes, extra):
    """At 700 of 1000 seconds, the last checkpoint was at 500: what follows it is done twice, or all of it."""
    monkeypatch.setattr("benchmarks.scheduler.Simulated", FailsOnce)
    world = World(workers=1, mtbf=1.0, repair=60.0, resumes=resumes)
    found = simulated(world, equal(1), 0)
    assert found["losses"] == 1
    assert found["hours"] == near(1000 + 60 + extra)
    assert found["again"] == pytest.approx(extra / (1000 + extra))
    assert found["failed"] == 0


def test_a_lock_of_the_dead_keeps_others_out_until_it_is_free(monkeypatch):
    monkeypatch.setattr("benchmarks.scheduler.Simulated", FailsOnce)
    world = World(workers=1, start=5.0, mtbf=1.0, repair=0.0, lease=90.0)
    found = simulated(world, equal(1), 0)
    assert found["failed"] == 0
    # Lost at 700; tried after 0.5, 2, 10 and 40 seconds, each 5 seconds long, in vain; then after 120.
    waited = 0.5 + 2 + 10 + 40 + 120 + 4 * 5
    assert found["hours"] == near(700 + waited + 5 + (1000 - 500), looks=15)


def test_what_fails_on_its_own_is_not_tried_again():
    found = simulated(World(workers=2, own_failures=1.0), equal(4), 0)
    assert found["failed"] == found["failed_by_themselves"] == 4
    assert found["losses"] == 0
    assert found["hours"] < 2000 / 3600


def test_the_longest_first_leaves_no_tail():
    lengths = equal(4, 100.0) | {"long": Length(400.0, 1000)}
    given, sorted_ = (simulated(World(2, order=o, tail=False), lengths, 0) for o in (SEED_BY_SEED, LONGEST_FIRST))
    assert given["hours"] == near(600)
    assert sorted_["hours"] == near(400)


def test_all_trials_end_though_nodes_fail_again_and_again():
    world = World(workers=32, start=10.0, mtbf=1500.0, repair=60.0, lease=30.0, slow=0.5)
    found = simulated(world, equal(100), 1)
    assert found["failed"] == 0
    assert found["losses"] > 20
    assert found["again"] > 0
    assert found == simulated(world, equal(100), 1) | {"loop_ms": found["loop_ms"]}


def test_trials_come_in_the_order_of_a_study():
    """Seeds change slowest, and by name one kind comes after the other."""
    short, long = Length(10.0, 1), Length(1000.0, 1)
    lengths = drawn_lengths([[short], [long]], 4, 0)
    assert list(lengths.values()) == [short, long, short, long]
    assert [lengths[name] for name in sorted(lengths)] == [short, short, long, long]


@pytest.mark.parametrize(("tail", "seconds"), [(False, 150), (True, 130)])
def test_long_trials_are_not_left_for_the_end(tail, seconds):
    """Two workers, short trials of 10 seconds, long ones of 100. In the study's order the last long one begins at 50;
    but once a short one has ended, what nobody knows the length of goes first, and short ones fill up the rest."""
    names = ("short-1", "long-1", "short-2", "short-3", "short-4", "short-5", "long-2")
    lengths = {name: Length(10.0 if name.startswith("short") else 100.0, 100) for name in names}
    assert simulated(World(workers=2, tail=tail), lengths, 0)["hours"] == near(seconds)
