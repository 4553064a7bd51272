"""Single look-ups: what is counted, and that knowing the dependency finds every paragraph."""

import random
from types import SimpleNamespace

import pytest
from hydra.utils import instantiate

from data_gen.ledger import LEDGER, draw
from data_gen.solution import Reading, Solution, solution
from data_gen.stories import STORIES
from eval.head_hits import HeadHits
from eval.reporting.names import title_of
from eval.reporting.steps import looking_heads, readable, steps_table
from eval.steps import Found, run_policy
from tests.byte_tokens import byte_tokenizer
from tests.zoomr.tiny import make_model
from zoomr import GivenZoom, load
from zoomr.loading import add_delimiters

WINDOW = 64


@pytest.fixture(scope="module")
def loaded():
    return load("train/micro_base", device="cpu")


@pytest.fixture(scope="module")
def drawn():
    return [draw(random.Random(seed), 6) for seed in range(2)]


def measure(loaded, drawn, policy, **given):
    solutions = [solution(LEDGER, problem, loaded[1]) for problem in drawn]
    found = Found(solutions)
    tally = HeadHits({key: look_up.needs for key, look_up in found.far.items()})
    blanks = {"targets": [problem.dependencies for problem in drawn], "tally": tally}
    built = instantiate(policy, _partial_=True)(**{name: blanks[name] for name in given})
    forced = run_policy(*loaded, solutions, built, found)
    return found, tally, found.row(forced)


def test_knowing_the_dependency_zooms_into_it_at_every_look_up(loaded, drawn):
    policy = {"_target_": "zoomr.GivenZoom", "c": 1, "k": 2, "window": WINDOW}
    found, _, row = measure(loaded, drawn, policy, targets=True)
    assert found.far
    assert row["hits"] == [1.0, 1.0]


def test_it_does_so_in_any_world_and_with_any_tokenizer():
    tokenizer = byte_tokenizer()
    add_delimiters(tokenizer)
    story = STORIES.draw(random.Random(2), 4, "anywhere")
    found = Found([solution(STORIES, story, tokenizer)])
    policy = GivenZoom(c=1, k=1, window=16, targets=(story.dependencies,))
    run_policy(make_model(vocab_size=len(tokenizer)), tokenizer, found.solutions, policy, found)
    assert found.far and all(map(found.hit, found.far))


def test_votes_and_heads_of_the_same_look_ups_are_counted(loaded, drawn):
    policy = {"_target_": "eval.head_hits.WatchedZoomR", "c": 1, "k": 1, "window": WINDOW}
    found, tally, row = measure(loaded, drawn, policy, tally=True)
    assert tally.look_ups == len(found.far)
    # with one vote a head, the share of first choices is the share of votes
    shares = [share for layer in tally.shares() for share in layer]
    assert row["vote_share"] == pytest.approx(sum(shares) / len(shares))
    assert 0 < row["vote_chance"] <= 0.5


def test_refreshes_elsewhere_than_at_the_name_count_by_what_they_left_zoomed_into(loaded, drawn):
    policy = {"_target_": "zoomr.ZoomR", "c": 99, "k": 99, "window": WINDOW, "every": 7}
    found, _, row = measure(loaded, drawn, policy)
    at_names = {key for key in found.far if key[1] in {position for position, _ in found.zoomed[key[0]]}}
    assert at_names != found.far.keys()
    assert len(row["hits"]) == 2 and all(0 <= share <= 1 for share in row["hits"])


def test_a_hit_is_told_by_the_last_refresh_up_to_the_name():
    found = Found([Solution([1, 2], [3] * 20, [Reading(position=10, answer=range(13, 15), paragraph=5, needs=1)])])
    for position, zoomed in ((4, (1,)), (9, (0, 2)), (12, (1,)), (14, (1,))):
        found.take(SimpleNamespace(prompt=0, position=position, zoomed=zoomed, votes=[]))
    assert found.hit((0, 12))
    found.zoomed[0].remove((12, (1,)))
    assert not found.hit((0, 12))


def test_ledgers_without_a_far_look_up_are_left_out_of_the_look_ups():
    near, far = (
        Solution([1], [3] * 20, [Reading(position=10, answer=range(13, 15), paragraph=5, needs=needs)])
        for needs in (4, 1)
    )
    found = Found([near, far])
    found.take(SimpleNamespace(prompt=1, position=11, zoomed=(1,), votes=[]))
    forced = SimpleNamespace(top=[3] * 20, stats=SimpleNamespace(active_tokens_peak=9))
    row = found.row([forced, forced])
    assert (row["look_ups"], row["hits"], row["others"]) == ([1.0], [1.0], [1.0, 1.0])


def test_the_full_cache_has_no_hits_to_count_and_the_table_says_nothing_of_them(loaded, drawn):
    found, _, row = measure(loaded, drawn, {"_target_": "zoomr.Full"})
    assert row["hits"] == [] and row["vote_share"] is None
    assert len(row["look_ups"]) == 2
    # the last token is predicted and never fed
    assert row["active_tokens_peak"] == [seen - 1 for seen in row["seen_tokens"]]
    (line,) = readable(steps_table([{"id": "full"} | row]))
    assert line["paragraph zoomed into"] == "" and line["votes on it"] == ""


def test_a_share_of_nought_is_shown_and_what_a_method_has_not_is_not():
    row = {"id": "zoomr", "look_ups": [0.0, 0.0], "hits": [], "others": [1.0, 0.5], "vote_share": None}
    row |= {"vote_chance": None, "active_tokens_peak": [5, 6], "seen_tokens": [9, 9]}
    (line,) = readable(steps_table([row]))
    assert str(line["look-ups right"]) == "0.0 [0.0, 0.0]"
    assert line["paragraph zoomed into"] == line["votes on it"] == ""


def test_methods_of_ones_own_keep_their_names():
    assert title_of("zoomr c=3") == "ZoomR, c=3"
    assert title_of("mine k=1") == "mine k=1"


def test_heads_that_find_it_in_half_of_the_look_ups_are_named():
    rows = [{"head_hits": None}, {"head_hits": [[0.1, 0.5], [0.49, 0.9]]}]
    assert looking_heads(rows) == [[0, 1], [1, 1]]
    assert looking_heads(rows[:1]) == []
