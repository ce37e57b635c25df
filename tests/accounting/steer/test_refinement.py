"""The refinement policy as data: what follows from a view and from what its look found. No engine,
no mechanism.
"""

import dataclasses
import itertools

import numpy as np
import pytest

import jaxgdp
from jaxgdp.accounting.run import executors, passes
from jaxgdp.accounting.steer import refinement as policy
from jaxgdp.accounting.steer.lattice_choice import SIZES, Lattice, Needs, choose
from jaxgdp.accounting.steer.refinement import (
    DONE,
    PLAN,
    RUN,
    WHOLE,
    Outcome,
    Rules,
    View,
    focus,
    more_pieces,
    refine,
    whole,
)

RULES = Rules(rtol=1e-3, max_size=2**20)
SPARSE = Lattice("sparse", 512, 128, 2**14, 32, 4, 12, 1)
HEAVY = Lattice("heavy", 8192, 0, 2**14, 0, 0, 0, 1)
LARGEST = HEAVY._replace(size=2 ** SIZES["heavy"][-1])
INSIDE = dict(
    ends=((3.0, 3.0), (-20.0, -20.0)), reach=(3.1, 3.1)
)  # the window reaches just as far as is needed


def ladder(view: View) -> Lattice:
    """A lattice for every fourfold detail, sparse unless a dense one is demanded."""
    size = 14 + 2 * int(np.log2(max(view.detail, 1.0)) // 2)
    return (HEAVY if view.dense else SPARSE)._replace(size=2**size)


def nothing_finer(view: View) -> Lattice:
    return SPARSE


def looked(excess, lattice=SPARSE, **where) -> Outcome:
    return Outcome(lattice, excess, **(INSIDE | where))


def test_accurate_enough_ends_a_view():
    for view in (whole(0, 1e3, RULES), focus(0, 1, 2.0, 1e3, RULES)):
        step = refine(view, looked(1.0), RULES, ladder)
        assert step.action == DONE and step.view.tries == 1 and step.view.excess == 1.0


@pytest.mark.parametrize(
    "ends", [(2.0, 3.0), (3.0, 2.0), (3.0, 4.0)], ids=["short", "short too", "beyond"]
)
def test_window_that_was_off_is_planned_again_where_the_look_says(ends):
    found = looked(50.0, ends=(ends, (-20.0, -21.0)))
    step = refine(whole(0, 1e3, RULES), found, RULES, ladder)
    assert step.action == PLAN and step.view.seen == found.ends and step.view.again == 1
    # … but not for ever, and not where several tilts share the way
    tired = dataclasses.replace(step.view, again=policy._MOST_AGAIN, excess=np.inf)
    assert refine(tired, found, RULES, ladder).action == RUN
    many = dataclasses.replace(whole(0, 1e3, RULES), pieces=8)
    assert refine(many, found, RULES, ladder).action == RUN


def test_ends_that_are_not_known_move_nothing():
    step = refine(
        whole(0, 1e3, RULES), looked(50.0, ends=((np.inf, 3.0), (0.0, -20.0))), RULES, ladder
    )
    assert step.action == RUN


def test_wide_brackets_get_a_finer_lattice_in_proportion():
    view = whole(0, 1e3, RULES)
    slightly, far = (refine(view, looked(excess), RULES, ladder) for excess in (2.0, 500.0))
    assert slightly.action == far.action == RUN
    assert ladder(slightly.view) != SPARSE and ladder(far.view) != SPARSE
    assert 1.0 < slightly.view.detail and 4.0 <= far.view.detail


def test_task_is_focused_after_a_finer_lattice_did_not_help():
    view = dataclasses.replace(whole(0, 1e3, RULES), tries=1, excess=10.0, detail=4.0)
    step = refine(view, looked(9.5), RULES, ladder)
    assert (
        step.action == PLAN and step.view.closer == 1 and step.view.faintest == 0.5 * view.faintest
    )
    assert step.view.detail == 4.0
    # it helped: go on
    assert refine(view, looked(5.0), RULES, ladder).action == RUN
    # as near as can be: many more points
    again = refine(dataclasses.replace(step.view, tries=1), looked(9.5), RULES, ladder)
    assert again.action == RUN and again.view.detail >= 8.0 * step.view.detail


def test_single_step_under_one_tilt_gets_some_where_neither_points_nor_nearness_helped():
    single = HEAVY._replace(kind="whole", size=2**16)
    view = dataclasses.replace(
        whole(0, 1e3, RULES),
        tries=3,
        excess=10.0,
        detail=16.0,
        closer=1,
        faintest=5.0,
        size=single.size,
        idle=1,
    )
    step = refine(view, looked(9.5, single), RULES, ladder)
    assert (
        step.action == PLAN and step.view.pieces == policy.PIECES[1] and step.view.faintest == 10.0
    )
    assert step.view.detail == 1.0 and step.view.closer == 0
    # not before a finer lattice was tried
    moved = refine(dataclasses.replace(view, idle=0), looked(9.5, single), RULES, ladder)
    assert moved.action == RUN and moved.view.idle == 0
    finer = refine(moved.view, looked(9.5, single._replace(size=2**18)), RULES, ladder)
    assert finer.view.idle == 1 and finer.view.pieces == policy.PIECES[1]
    # nor of compositions, nor where the sides do not close, nor twice
    open_rules = dataclasses.replace(RULES, tight=False)
    for other, lattice, rules in (
        (view, HEAVY, RULES), (view, single, open_rules), (dataclasses.replace(view, pieces=8), single, RULES),
    ):  # fmt: skip
        assert refine(other, looked(9.5, lattice), rules, nothing_finer).action == DONE


def test_pair_that_is_not_closed_is_not_chased():
    rules = dataclasses.replace(RULES, tight=False)
    view = dataclasses.replace(whole(0, 1e3, rules), tries=policy._FEW_TRIES - 1, excess=10.0)
    assert refine(view, looked(9.9), rules, nothing_finer).why != "accurate enough"
    late = dataclasses.replace(view, closer=1)
    assert refine(late, looked(9.9), rules, ladder).action == DONE


def test_sparse_lattice_that_is_lost_is_given_up_for_a_dense_one():
    view = dataclasses.replace(whole(0, 1e3, RULES), tries=1, closer=1, excess=1e3, detail=16.0)
    step = refine(view, looked(1e3), RULES, ladder)
    assert step.action == RUN and step.view.dense and ladder(step.view).kind == "heavy"


def test_refinement_ends_when_nothing_is_left():
    nearest = dataclasses.replace(whole(0, 1e3, RULES), closer=1)
    assert refine(nearest, looked(7.0), RULES, nothing_finer).action == DONE
    assert refine(nearest, looked(7.0, LARGEST), RULES, ladder).action == DONE
    tried = dataclasses.replace(nearest, tries=policy._TRIES - 1, excess=70.0)
    assert refine(tried, looked(7.0), RULES, ladder).action == DONE


def test_no_finer_lattice_is_looked_at_from_nearer_first():
    step = refine(whole(0, 1e3, RULES), looked(7.0), RULES, nothing_finer)
    assert step.action == PLAN and step.view.closer == 1


def test_view_of_one_threshold_follows_it():
    view = focus(3, 1, 2.0, 1e3, RULES)
    assert (view.setting, view.aim, view.threshold, view.pieces) == (3, 1, 2.0, 1)
    step = refine(view, looked(5.0, threshold=2.4, spread=0.5), RULES, ladder)
    assert step.action == PLAN and step.view.threshold == 2.4 and step.view.again == 1
    for threshold in (2.2, np.nan):
        near = refine(view, looked(5.0, threshold=threshold, spread=0.5), RULES, ladder)
        assert near.action == RUN and near.view.threshold == 2.0


def test_view_of_one_threshold_gets_as_near_as_there_are_shares_of_jumps():
    """… where there are jumps; elsewhere they decide nothing, and it ends."""
    start, jumps = focus(0, 0, 2.0, 1e3, RULES), LARGEST._replace(kind="jump")
    assert refine(start, looked(100.0, LARGEST), RULES, ladder).action == DONE
    view, seen = start, []
    for _ in range(20):
        step = refine(view, looked(100.0, jumps), RULES, ladder)
        if step.action == DONE:
            break
        assert step.action == PLAN
        view = step.view
        seen.append(view.closer)
    assert seen == list(range(1, len(policy.JUMP_SHARES))) and step.action == DONE
    # a look that saw nothing is not repeated on a finer lattice before the others
    blind = refine(start, looked(0.5 / RULES.rtol, jumps._replace(size=2**14)), RULES, ladder)
    assert blind.action == PLAN and blind.view.closer == 1


@pytest.mark.parametrize("aim", [WHOLE, 0])
@pytest.mark.parametrize("seed", range(20))
def test_every_view_comes_to_an_end(aim, seed):
    """Whatever looks find, in whatever order, no view is looked at for ever, and none ends while
    something promising is left.
    """
    rng = np.random.default_rng(seed)
    view = whole(0, 1e4, RULES) if aim == WHOLE else focus(0, aim, 1.0, 1e4, RULES)
    for _ in range(40):
        found = looked(
            float(np.exp(rng.uniform(0.1, 12.0))),
            ladder(view),
            ends=(tuple(rng.uniform(1.0, 4.0, 2)), (-20.0, -20.0)),
            threshold=float(rng.uniform(0.0, 3.0)),
            spread=float(rng.uniform(0.0, 3.0)),
        )
        step = refine(view, found, RULES, ladder)
        assert step.view.tries == view.tries + 1 and step.view.excess <= view.excess
        if step.action == DONE:
            break
        assert step.action != RUN or ladder(step.view) != found.lattice
        view = step.view
    assert step.action == DONE and step.view.tries <= policy._TRIES + policy._MOST_AGAIN + len(
        policy.JUMP_SHARES
    )


def test_policy_changes_nothing_it_was_given():
    view, found = whole(0, 1e3, RULES), looked(9.0)
    before = dataclasses.asdict(view)
    one, two = (refine(view, found, RULES, ladder) for _ in range(2))
    assert one == two and dataclasses.asdict(view) == before


def test_long_pieces_get_more_tilts():
    view = whole(0, 1e3, RULES)
    assert more_pieces(view, policy.LONGEST_PIECE) is None
    longer = more_pieces(view, 13.0)
    assert (
        longer.pieces == policy.PIECES[1] and more_pieces(longer, 13.0).pieces == policy.PIECES[2]
    )
    assert more_pieces(dataclasses.replace(view, pieces=policy.PIECES[-1]), 99.0) is None
    assert more_pieces(focus(0, 0, 1.0, 1e3, RULES), 99.0) is None
    assert whole(0, 1e3, dataclasses.replace(RULES, keep=True)).pieces == policy.PIECES[1]


def test_rounding_leaves_less_usable_where_steps_are_many_or_accuracy_is_high():
    fine = dataclasses.replace(RULES, rtol=1e-6)
    assert RULES.faintest(1e7) < RULES.faintest(10.0) == RULES.faintest(1e3) and fine.faintest(
        1e3
    ) < RULES.faintest(1e3)


def test_compiling_pays_for_many_looks():
    many, few = executors.MANY, executors.MANY_ONCE_COMPILED
    assert (
        executors.choose(many, False) is executors.EAGER
        and executors.choose(many + 1, False) is executors.COMPILED
    )
    assert (
        executors.choose(few + 1, True) is executors.COMPILED
        and executors.choose(few, True) is executors.EAGER
    )


def test_single_call_of_a_process_is_left_to_numpy(monkeypatch):
    monkeypatch.delenv("JAXGDP_EXECUTOR", raising=False)
    most = executors.MANY_AND_NO_MORE
    assert executors.for_one_call(1) == executors.for_one_call(most) == "eager"
    assert executors.for_one_call(most + 1) is None
    monkeypatch.setenv("JAXGDP_EXECUTOR", "compiled")
    assert executors.for_one_call(1) is None
    monkeypatch.setenv("JAXGDP_EXECUTOR", "auto")
    monkeypatch.setattr(executors.jax, "default_backend", lambda: "gpu")
    assert executors.for_one_call(1) is None


def test_repeated_questions_are_compiled_in_the_end(monkeypatch):
    """After as many looks as compiling takes; for a few at a time never, nor for fewer than were
    done at once before.
    """
    monkeypatch.setattr(passes, "_BY_NUMPY", {})
    groups = jaxgdp.dpsgd(1.1, 0.01, 2000).stacked()
    mine = passes.Batch(groups, None, None, None, None, None)
    most = executors.MANY
    rounds = executors.MANY_IN_ALL // most
    assert [mine.choose(most, "a").name for _ in range(rounds + 1)] == ["eager"] * rounds + [
        "compiled"
    ]
    assert mine.choose(most - 1, "a") is executors.EAGER
    assert mine.choose(most, "another") is executors.EAGER
    assert all(
        mine.choose(executors.MANY_ONCE_COMPILED, "few") is executors.EAGER for _ in range(2000)
    )
    asked = mine._replace(executor=executors.PRODUCT)
    assert asked.choose(1, "a") is executors.PRODUCT


@pytest.mark.parametrize(
    "kind, near, far, times", [("jump", 3.0, 50.0, 2), ("heavy", 3.0, 50.0, 4)]
)
def test_view_of_one_threshold_gets_more_points_where_they_will_do(kind, near, far, times):
    need = Needs(3e6, 3e6, 1e9, 512.0, 10.0, 10.0, 32.0, 2000.0, False, True, kind == "jump")

    def choice(view: View) -> Lattice:
        return choose(need, view.detail, 1e-3, 1, RULES.max_size, view.dense, excess=view.excess)

    view = focus(0, 0, 5.0, 2000.0, RULES)
    first = choice(view)
    assert first.kind == kind and first.size == 2**20
    for excess, points in ((near, times * 2**20), (far, 2**20)):
        step = refine(view, looked(excess, first, threshold=5.0, spread=1.0), RULES, choice)
        again = choice(step.view)
        assert again.size == points and (step.action == RUN) == (points > first.size)
        # and no more than that
        assert (
            refine(
                step.view, looked(excess, again, threshold=5.0, spread=1.0), RULES, choice
            ).action
            != RUN
        )


def test_second_look_at_one_threshold_is_dense_up_to_the_largest_lattice():
    """Even where a sparse one would serve: points that are equally far apart leave nothing to
    chance.
    """
    need = Needs(1e6, 3e6, 50.0, 512.0, 10.0, 10.0, 32.0, 2000.0, False, True, False)
    looks = (1.0, np.inf), (4.0, 4.0), (4.0, 50.0)
    first, near, far = (
        choose(need, detail, 1e-5, 1, RULES.max_size, False, excess=excess)
        for detail, excess in looks
    )
    assert (first.kind, far.kind) == ("sparse", "sparse")
    assert near.kind == "heavy" and near.size == 2**21


def test_whole_curve_gets_no_more_points_than_usual():
    need = Needs(3e6, 3e6, 1e9, 512.0, 10.0, 10.0, 32.0, 2000.0, False, False, False)
    assert choose(need, 4.0, 1e-3, 1, RULES.max_size, False, excess=2.0).size == 2**20
    assert refine(whole(0, 2e3, RULES), looked(2.0, LARGEST), RULES, nothing_finer).action != RUN


@pytest.mark.parametrize("whole_step", [False, True])
@pytest.mark.parametrize("jumps", [False, True])
@pytest.mark.parametrize("largest", [2**k for k in range(10, 21)])
def test_limit_on_lattices_holds(largest, jumps, whole_step):
    need = Needs(3e6, 3e6, 1e9, 512.0, 10.0, 10.0, 32.0, 2000.0, whole_step, True, jumps)
    for detail, excess in itertools.product((1.0, 4.0, 64.0), (2.0, 50.0)):
        found = choose(need, detail, 1e-3, 1, largest, True, excess=excess)
        assert 1 <= found.vertices <= found.size // 2
        assert found.size <= max(largest, 2**13) or (largest == 2**20 and excess == 2.0)
