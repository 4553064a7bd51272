"""The word problems against a reader that knows their English and nothing of how they were drawn."""

import re

from data_gen.benchmarks import WordProblems, checksum

PROMPT = "Return your final response within \\boxed{}. {problem}"


def load(seed=0, count=60):
    return WordProblems("word_problems", [4, 9, 14], count, PROMPT, seed=seed).load()


def read(text):
    """Work the problem out from its words; returns the answer and, a person, the sentences back that were needed."""
    owned, order, distances = {}, [], []
    for sentence in re.findall(r"[A-Z][^.?]*[.?]", text.removeprefix("Return your final response within \\boxed{}. ")):
        if sentence.endswith("?"):
            one, two = re.search(r"do (\w+) and (\w+) have", sentence).groups()
            return owned[one] + owned[two], distances, order.index(one)
        name = sentence.split()[0]
        if match := re.search(r"as many \w+ as (\w+) and (\w+) together", sentence):
            others = match.groups()
            value = owned[others[0]] + owned[others[1]]
        elif match := re.search(r"has (\d+) (more|fewer) \w+ than (\w+)", sentence):
            others = (match[3],)
            value = owned[match[3]] + int(match[1]) * (1 if match[2] == "more" else -1)
        elif match := re.search(r"twice as many \w+ as (\w+)", sentence):
            others = (match[1],)
            value = 2 * owned[match[1]]
        else:
            others = ()
            value = int(re.search(r"has (\d+) \w+\.", sentence)[1])
        distances += [len(order) - order.index(other) for other in others]
        order.append(name)
        owned[name] = value
        assert value > 0
    raise AssertionError("no question")


def test_answers_follow_from_the_words():
    for problem in load():
        assert str(read(problem.user)[0]) == problem.gold


def test_late_steps_need_early_details():
    found = [read(problem.user) for problem in load()]
    assert all(asked < 3 for _, _, asked in found)
    distances = [distance for _, own, _ in found for distance in own]
    assert sum(distance > 3 for distance in distances) > len(distances) / 5


def test_the_seed_decides():
    assert checksum(load(1)) == checksum(load(1)) != checksum(load(2))
    assert [problem.user for problem in load(count=5)] == [problem.user for problem in load(count=60)[:5]]
    assert len({problem.user for problem in load(count=200)}) == 200
