"""The refinement policy as data: what follows from a task and from what its pass found. No engine,
no mechanism.
"""

import dataclasses
import itertools

import numpy as np
import pytest

from jaxgdp.accounting.run import executors
from jaxgdp.accounting.steer import refinement as policy
from jaxgdp.accounting.steer.lattice_choice import choose, likeliest
from jaxgdp.accounting.steer.lattice_needs import Needs
from jaxgdp.accounting.steer.lattices import SIZES, LatticeChoice
from jaxgdp.accounting.steer.refinement import (
    DONE,
    PLAN,
    RUN,
    PassResult,
    Reach,
    Rules,
    Task,
    more_pieces,
    one_threshold,
    refine,
    whole_curve,
)

RULES = Rules(rtol=1e-3, max_size=2**20)
SPARSE = LatticeChoice("sparse", 512, 128, 2**14, 32, 4, 12, 1)
HEAVY = LatticeChoice("heavy", 8192, 0, 2**14, 0, 0, 0, 1)
LARGEST = HEAVY._replace(size=2 ** SIZES["heavy"][-1])
INSIDE = dict(
    required_reach=Reach((3.0, 3.0), (-20.0, -20.0)), planned_reach=(3.1, 3.1)
)  # the window reaches just as far as is needed


def ladder(task: Task) -> LatticeChoice:
    """A lattice for every fourfold detail, sparse unless a dense one is demanded."""
    size = 14 + 2 * int(np.log2(max(task.detail, 1.0)) // 2)
    return (HEAVY if task.dense else SPARSE)._replace(size=2**size)


def nothing_finer(task: Task) -> LatticeChoice:
    return SPARSE


def passed(excess, lattice=SPARSE, **where) -> PassResult:
    return PassResult(lattice, excess, **(INSIDE | where))


def test_task_ends_where_it_is_accurate_enough():
    for task in (whole_curve(0, 1e3, RULES), one_threshold(0, 1, 2.0, 1e3, RULES)):
        decision = refine(task, passed(1.0), RULES, ladder)
        assert decision.action == DONE and decision.task.tries == 1 and decision.task.excess == 1.0


@pytest.mark.parametrize(
    "reach", [(2.0, 3.0), (3.0, 2.0), (3.0, 4.0)], ids=["short", "short too", "beyond"]
)
def test_window_that_was_off_is_planned_again_where_the_pass_says(reach):
    found = passed(50.0, required_reach=Reach(reach, (-20.0, -21.0)))
    decision = refine(whole_curve(0, 1e3, RULES), found, RULES, ladder)
    assert (
        decision.action == PLAN
        and decision.task.known_reach == found.required_reach
        and decision.task.window_moves == 1
    )
    # … but not for ever, and not where several tilts share the way
    tired = dataclasses.replace(decision.task, window_moves=policy._MOST_MOVES, excess=np.inf)
    assert refine(tired, found, RULES, ladder).action == RUN
    many = dataclasses.replace(whole_curve(0, 1e3, RULES), pieces=8)
    assert refine(many, found, RULES, ladder).action == RUN


def test_reach_that_is_not_known_moves_nothing():
    decision = refine(
        whole_curve(0, 1e3, RULES),
        passed(50.0, required_reach=Reach((np.inf, 3.0), (0.0, -20.0))),
        RULES,
        ladder,
    )
    assert decision.action == RUN


def test_wide_brackets_get_a_finer_lattice_in_proportion():
    task = whole_curve(0, 1e3, RULES)
    slightly, far = (refine(task, passed(excess), RULES, ladder) for excess in (2.0, 500.0))
    assert slightly.action == far.action == RUN
    assert ladder(slightly.task) != SPARSE and ladder(far.task) != SPARSE
    assert 1.0 < slightly.task.detail and 4.0 <= far.task.detail


def test_tilt_is_weakened_where_a_finer_lattice_did_not_help():
    task = dataclasses.replace(whole_curve(0, 1e3, RULES), tries=1, excess=10.0, detail=4.0)
    decision = refine(task, passed(9.5), RULES, ladder)
    assert (
        decision.action == PLAN
        and decision.task.gentler_tilts == 1
        and decision.task.max_neg_log_density == 0.5 * task.max_neg_log_density
    )
    assert decision.task.detail == 4.0
    # it helped: go on
    assert refine(task, passed(5.0), RULES, ladder).action == RUN
    # as near as can be: many more points
    again = refine(dataclasses.replace(decision.task, tries=1), passed(9.5), RULES, ladder)
    assert again.action == RUN and again.task.detail >= 8.0 * decision.task.detail


def test_single_step_gets_more_tilts_where_neither_points_nor_a_gentler_tilt_helped():
    single = HEAVY._replace(kind="whole", size=2**16)
    task = dataclasses.replace(
        whole_curve(0, 1e3, RULES),
        tries=3,
        excess=10.0,
        detail=16.0,
        gentler_tilts=1,
        max_neg_log_density=5.0,
        size=single.size,
        stalled=1,
    )
    decision = refine(task, passed(9.5, single), RULES, ladder)
    assert (
        decision.action == PLAN
        and decision.task.pieces == policy.PIECES[1]
        and decision.task.max_neg_log_density == 10.0
    )
    assert decision.task.detail == 1.0 and decision.task.gentler_tilts == 0
    # not before a finer lattice was tried
    moved = refine(dataclasses.replace(task, stalled=0), passed(9.5, single), RULES, ladder)
    assert moved.action == RUN and moved.task.stalled == 0
    finer = refine(moved.task, passed(9.5, single._replace(size=2**18)), RULES, ladder)
    assert finer.task.stalled == 1 and finer.task.pieces == policy.PIECES[1]
    # nor of compositions, nor where the sides do not close, nor twice
    open_rules = dataclasses.replace(RULES, tight=False)
    for other, lattice, rules in (
        (task, HEAVY, RULES),
        (task, single, open_rules),
        (dataclasses.replace(task, pieces=8), single, RULES),
    ):
        assert refine(other, passed(9.5, lattice), rules, nothing_finer).action == DONE


def test_pair_that_is_not_closed_is_not_chased():
    rules = dataclasses.replace(RULES, tight=False)
    task = dataclasses.replace(whole_curve(0, 1e3, rules), tries=policy._FEW_TRIES - 1, excess=10.0)
    assert refine(task, passed(9.9), rules, nothing_finer).why != "accurate enough"
    late = dataclasses.replace(task, gentler_tilts=1)
    assert refine(late, passed(9.9), rules, ladder).action == DONE


def test_sparse_lattice_that_is_lost_is_given_up_for_a_dense_one():
    task = dataclasses.replace(
        whole_curve(0, 1e3, RULES), tries=1, gentler_tilts=1, excess=1e3, detail=16.0
    )
    decision = refine(task, passed(1e3), RULES, ladder)
    assert decision.action == RUN and decision.task.dense and ladder(decision.task).kind == "heavy"


@pytest.mark.parametrize("excess, ends", [(4.4, True), (1.05, False)])
def test_point_that_finer_lattices_do_not_help_is_given_up(excess, ends):
    """Two lattices, each many times finer, left the bracket as it was; a third one will not help,
    unless it is all but as narrow as asked.
    """
    task, sizes = one_threshold(0, 1, 2.0, 12.0, RULES), (2**14, 2**16, 2**18)
    for tries, size in enumerate(sizes):
        found = passed(excess, HEAVY._replace(size=size), threshold=2.0)
        decision = refine(task, found, RULES, lambda task: HEAVY._replace(size=2**20))
        task = decision.task
        assert decision.action == (DONE if ends and tries == 2 else RUN)
    # … but where each of them gains, the next one is taken
    task = one_threshold(0, 1, 2.0, 12.0, RULES)
    for size, excess in zip(sizes, (9.0, 5.0, 3.0), strict=True):
        found = passed(excess, HEAVY._replace(size=size), threshold=2.0)
        decision = refine(task, found, RULES, lambda task: HEAVY._replace(size=2**20))
        task = decision.task
        assert decision.action == RUN


def test_refinement_ends_when_nothing_is_left():
    nearest = dataclasses.replace(whole_curve(0, 1e3, RULES), gentler_tilts=1, pieces=8)
    assert refine(nearest, passed(7.0), RULES, nothing_finer).action == DONE
    assert refine(nearest, passed(7.0, LARGEST), RULES, ladder).action == DONE
    tried = dataclasses.replace(nearest, tries=policy._TRIES - 1, excess=70.0)
    assert refine(tried, passed(7.0), RULES, ladder).action == DONE


def test_many_steps_get_more_tilts_where_nothing_else_is_left():
    one_tilt = dataclasses.replace(whole_curve(0, 1e3, RULES), gentler_tilts=1)
    decision = refine(one_tilt, passed(7.0), RULES, nothing_finer)
    assert decision.action == PLAN and decision.task.pieces == 8


def test_tilt_is_weakened_first_where_there_is_no_finer_lattice():
    decision = refine(whole_curve(0, 1e3, RULES), passed(7.0), RULES, nothing_finer)
    assert decision.action == PLAN and decision.task.gentler_tilts == 1


def test_point_task_follows_its_threshold():
    task = one_threshold(3, 1, 2.0, 1e3, RULES)
    assert (task.setting, task.quantity, task.threshold, task.pieces) == (3, 1, 2.0, 1)
    decision = refine(task, passed(5.0, threshold=2.4, spread=0.5), RULES, ladder)
    assert (
        decision.action == PLAN
        and decision.task.threshold == 2.4
        and decision.task.window_moves == 1
    )
    for threshold in (2.2, np.nan):
        near = refine(task, passed(5.0, threshold=threshold, spread=0.5), RULES, ladder)
        assert near.action == RUN and near.task.threshold == 2.0


def test_point_task_gets_as_many_gentler_tilts_as_there_are_shares_of_jumps():
    """… where there are jumps; elsewhere they decide nothing, and it ends."""
    start, jumps = one_threshold(0, 0, 2.0, 1e3, RULES), LARGEST._replace(kind="jump")
    assert refine(start, passed(100.0, LARGEST), RULES, ladder).action == DONE
    task, tilts = start, []
    for _ in range(20):
        decision = refine(task, passed(100.0, jumps), RULES, ladder)
        if decision.action == DONE:
            break
        assert decision.action == PLAN
        task = decision.task
        tilts.append(task.gentler_tilts)
    assert tilts == list(range(1, len(policy.JUMP_SHARES))) and decision.action == DONE
    # a pass that resolved nothing is not repeated on a finer lattice before the others
    blind = refine(start, passed(0.5 / RULES.rtol, jumps._replace(size=2**14)), RULES, ladder)
    assert blind.action == PLAN and blind.task.gentler_tilts == 1


@pytest.mark.parametrize("quantity", [None, 0])
@pytest.mark.parametrize("seed", range(20))
def test_every_task_comes_to_an_end(quantity, seed):
    """Whatever passes find, in whatever order, no task goes on for ever, and none ends while
    something promising is left.
    """
    rng = np.random.default_rng(seed)
    whole = quantity is None
    task = whole_curve(0, 1e4, RULES) if whole else one_threshold(0, quantity, 1.0, 1e4, RULES)
    for _ in range(40):
        found = passed(
            float(np.exp(rng.uniform(0.1, 12.0))),
            ladder(task),
            required_reach=Reach(tuple(rng.uniform(1.0, 4.0, 2)), (-20.0, -20.0)),
            threshold=float(rng.uniform(0.0, 3.0)),
            spread=float(rng.uniform(0.0, 3.0)),
        )
        decision = refine(task, found, RULES, ladder)
        assert decision.task.tries == task.tries + 1 and decision.task.excess <= task.excess
        if decision.action == DONE:
            break
        assert decision.action != RUN or ladder(decision.task) != found.lattice
        task = decision.task
    most = policy._TRIES + policy._MORE_DENSE + policy._MOST_MOVES + len(policy.JUMP_SHARES)
    assert decision.action == DONE and decision.task.tries <= most


def test_policy_changes_nothing_it_was_given():
    task, found = whole_curve(0, 1e3, RULES), passed(9.0)
    before = dataclasses.asdict(task)
    one, two = (refine(task, found, RULES, ladder) for _ in range(2))
    assert one == two and dataclasses.asdict(task) == before


def test_long_pieces_get_more_tilts():
    task = whole_curve(0, 1e3, RULES)
    assert more_pieces(task, policy.LONGEST_PIECE, 1e-3) is None
    longer = more_pieces(task, 13.0, 1e-3)
    assert longer.pieces == policy.PIECES[1]
    assert more_pieces(longer, 13.0, 1e-3).pieces == policy.PIECES[2]
    assert more_pieces(dataclasses.replace(task, pieces=policy.PIECES[-1]), 99.0, 1e-3) is None
    assert more_pieces(one_threshold(0, 0, 1.0, 1e3, RULES), 99.0, 1e-3) is None
    assert whole_curve(0, 1e3, dataclasses.replace(RULES, keep=True)).pieces == policy.PIECES[1]


def test_pieces_are_no_longer_than_densities_are_usable():
    fine = dataclasses.replace(RULES, rtol=1e-5)
    task = whole_curve(0, 1e11, fine)
    assert task.max_neg_log_density == 6.0
    assert more_pieces(task, 6.9, 1e-5) is None
    assert more_pieces(task, 7.0, 1e-5).pieces == policy.PIECES[1]
    weaker = dataclasses.replace(task, gentler_tilts=1, max_neg_log_density=3.0)
    assert more_pieces(weaker, 6.9, 1e-5) is None


def test_rounding_leaves_less_usable_where_steps_are_many_or_accuracy_is_high():
    fine = dataclasses.replace(RULES, rtol=1e-6)
    assert RULES.max_neg_log_density(1e7) < RULES.max_neg_log_density(
        10.0
    ) == RULES.max_neg_log_density(1e3) and fine.max_neg_log_density(
        1e3
    ) < RULES.max_neg_log_density(1e3)


def test_compiling_pays_for_many_passes():
    many, few = executors.MANY, executors.MANY_ONCE_COMPILED
    assert (
        executors.choose(many, False) is executors.EAGER
        and executors.choose(many + 1, False) is executors.COMPILED
    )
    assert (
        executors.choose(few + 1, True) is executors.COMPILED
        and executors.choose(few, True) is executors.EAGER
    )


@pytest.mark.parametrize(
    "kind, near, far, usual, times", [("jump", 3.0, 50.0, 2**19, 2), ("heavy", 3.0, 50.0, 2**20, 1)]
)
def test_point_task_gets_more_points_where_they_will_do(kind, near, far, usual, times):
    """Those of lattices for what takes a jump are twice as many, those of others no more."""
    need = Needs(3e6, 3e6, 1e9, 512.0, 10.0, 10.0, 32.0, 2000.0, False, True, kind == "jump")

    def choice(task: Task) -> LatticeChoice:
        return choose(need, task.detail, 1e-3, 1, RULES.max_size, task.dense, excess=task.excess)

    task = one_threshold(0, 0, 5.0, 2000.0, RULES)
    first = choice(task)
    assert first.kind == kind and first.size == usual
    for excess, points in ((near, times * usual), (far, usual)):
        decision = refine(task, passed(excess, first, threshold=5.0, spread=1.0), RULES, choice)
        again = choice(decision.task)
        assert again.size == points and (decision.action == RUN) == (points > first.size)
        # and no more than that
        assert (
            refine(
                decision.task, passed(excess, again, threshold=5.0, spread=1.0), RULES, choice
            ).action
            != RUN
        )


def test_second_pass_about_one_threshold_is_dense_up_to_the_largest_lattice():
    """Even where a sparse one would serve: points that are equally far apart leave nothing to
    chance.
    """
    passes = (2e5, 1.0, np.inf), (2e5, 4.0, 4.0), (1e6, 4.0, 4.0)
    first, near, far = (
        choose(
            Needs(points, 3e6, 50.0, 512.0, 10.0, 10.0, 32.0, 2000.0, False, True, False),
            *(detail, 1e-5, 1, RULES.max_size, False),
            excess=excess,
        )
        for points, detail, excess in passes
    )
    assert (first.kind, far.kind) == ("sparse", "sparse")
    assert near.kind == "heavy" and near.size == 2**19


def test_whole_curve_gets_no_more_points_than_usual():
    need = Needs(3e6, 3e6, 1e9, 512.0, 10.0, 10.0, 32.0, 2000.0, False, False, False)
    assert choose(need, 4.0, 1e-3, 1, RULES.max_size, False, excess=2.0).size == 2**20
    assert (
        refine(whole_curve(0, 2e3, RULES), passed(2.0, LARGEST), RULES, nothing_finer).action != RUN
    )


@pytest.mark.parametrize("rtol", [1e-3, 1e-5])
def test_first_pass_gets_no_more_vertices_than_the_width_promised_takes(rtol):
    """The smallest lattice where μ alone is asked; twice the vertices and more where the regret
    takes a narrower μ, where the first pass was too wide, and where nothing is foreseen.
    """
    across = 180.0 * np.sqrt(1e-3 / rtol)
    need = Needs(8e3, 1e6, 30.0, across, 5.0, 5e3, 8.0, 1e3, False, False, False, 1.0)

    def vertices(detail=1.0, **other):
        return choose(need._replace(**other), detail, rtol, 1, RULES.max_size, False).vertices

    least = vertices()
    assert least < likeliest(rtol).vertices
    for other in ({"share": 0.25}, {"share": 0.0}, {"detail": 1.5}, {"bandwidth": 60.0}):
        assert vertices(**other) >= 2 * least


@pytest.mark.parametrize("whole_step", [False, True])
@pytest.mark.parametrize("jumps", [False, True])
@pytest.mark.parametrize("largest", [2**k for k in range(10, 21)])
def test_limit_on_lattices_holds(largest, jumps, whole_step):
    need = Needs(3e6, 3e6, 1e9, 512.0, 10.0, 10.0, 32.0, 2000.0, whole_step, True, jumps)
    for detail, excess in itertools.product((1.0, 4.0, 64.0), (2.0, 50.0)):
        found = choose(need, detail, 1e-3, 1, largest, True, excess=excess)
        assert 1 <= found.vertices <= found.size // 2
        assert found.size <= max(largest, 2**13) or (largest == 2**20 and excess == 2.0)
