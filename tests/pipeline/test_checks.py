"""Every setting of configs/ is checked, with its name, its value and what is allowed."""

import math

import pytest
from omegaconf import OmegaConf

from pipeline import Run
from pipeline.checks import allowed, check, leaves
from pipeline.cli import CONFIGS, choices
from pipeline.objects import make
from tests.configs.test_configs import compose
from zoomr.errors import UserError

ROOTS = sorted({path.stem for path in CONFIGS.glob("*.yaml")} - {"base"})
WRONG = {
    "generation.temperature": (-0.1, math.nan, math.inf, "hot", True, None),
    "generation.top_p": (0, 1.1, -1),
    "generation.samples": (0, 1.5, "many"),
    "generation.max_new_tokens": (0, -5, True),
    "generation.window": (0, "80"),
    "batch_size": (0, 2.5),
    "limit": (0, -1),
    "seed": (-1, 0.5),
    "traces": (-1,),
    "shard": ("1", "a/b", 3),
    "device": ("gpu", 0),
    "checkpoint": (None, ["x"]),
    "model.dtype": ("fp16", 16),
    "match.statistic": ("median",),
    "reference.k": (0,),
    "method.budget": (0, -4, 1.5, "64XB", True),
    "score.workers": (0,),
    "score.seconds": (0, -1),
    "benchmark.count": (0,),
    "benchmark.lengths": ([], [0], 4, [4, "x"]),
    "paths.root": (["x"], None, 1),
    "tracker.mode": ("on",),
    "table_rows": (-1,),
    "push": ("yes", 1),
}
WRONG_OF_TRAINING = {
    "sft.learning_rate": (0, -1e-4, "fast"),
    "sft.epochs": (0,),
    "sft.warmup": (1.5,),
    "sft.sampling": ("sorted",),
    "sft.save_every": (0, 0.0, 1.5, -1),
    "sft.policy_share": (2,),
    "sft.adherence.problems": (-1,),
    "lora.r": (0,),
    "lora.dropout": (1, -0.1),
    "export.tolerance": (0,),
}
WRONG_OF_DATA = {
    "build.overlap": (0, 1.2),
    "build.over_length": ("shorten",),
    "build.validation_share": (-0.1, 1.1),
    "summarize.context": ("all",),
    "summarize.failed_share": (2,),
    "summarize.patience.answers": (0,),
    "teacher.concurrency": (0,),
    "teacher.deadline": (0,),
    "teacher.sampling.temperature": (-1,),
    "dataset.tokens": ("words",),
    "dataset.segmentation.minimum": (0,),
    "dataset.source.lengths": ([0],),
}


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("preset", choices("preset"))
def test_every_setting_is_checked_and_every_preset_passes(root, preset):
    config = compose(root, f"preset={preset}")
    check(config)
    settings = OmegaConf.to_container(config, resolve=True)
    assert [name for name, _ in leaves(settings) if allowed(name) is None] == []


@pytest.mark.parametrize("group", ["benchmark", "dataset", "generation", "method", "model", "teacher", "tracker"])
def test_every_choice_passes(group):
    for choice in choices(group):
        config = compose("eval", f"{group}={choice}")
        check(config)
        settings = OmegaConf.to_container(config, resolve=True)
        assert [name for name, _ in leaves(settings) if allowed(name) is None] == []


@pytest.mark.parametrize(
    ("root", "overrides", "wrong"),
    [("eval", ["method=h2o"], WRONG), ("train", [], WRONG_OF_TRAINING), ("data_gen", [], WRONG_OF_DATA)],
)
def test_what_is_not_allowed_is_told_with_name_value_and_what_is(root, overrides, wrong):
    config = compose(root, *overrides)
    for name, values in wrong.items():
        for value in values:
            changed = config.copy()
            OmegaConf.update(changed, name, value)
            with pytest.raises(UserError, match=rf"^{name}=.*: .+ is needed\.") as told:
                check(changed)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                assert f"{name}={value}: " in str(told.value)


@pytest.mark.parametrize("budget", [1, 64, 0.25, 1.0, "64MB", "0.5GiB", "match"])
def test_budgets_of_every_form_pass(budget):
    config = compose("eval", "method=h2o")
    config.method.budget = budget
    check(config)


def test_a_text_that_was_read_as_something_else_is_shown_quoted():
    config = compose("eval")
    config.paths.root = ["x"]
    with pytest.raises(UserError, match=r"^paths\.root=\['x'\]: a text is needed\. Write 'paths\.root=\"\[x\]\"'\.$"):
        check(config, ["seed=1", "paths.root=[x]"])


class Thing:
    """Refuses what is negative."""

    def __init__(self, size=1, colour="red"):
        if size < 0:
            raise UserError(f"size={size}: a whole number of at least 0 is needed.")
        if colour != "red":
            raise ValueError("only red will do")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"size": -1}, r"^method\.size=-1: a whole number of at least 0 is needed\.$"),
        ({"colour": "blue"}, r"^method: only red will do$"),
        ({"weight": 2}, r"^method\.weight: Thing has no such setting\.$"),
    ],
)
def test_what_an_object_refuses_is_told_with_the_setting_in_full(settings, sentence):
    with pytest.raises(UserError, match=sentence):
        make("method", {"_target_": f"{__name__}.Thing"} | settings)


def test_an_object_that_does_not_exist_is_named():
    with pytest.raises(UserError, match=r"method\._target_=zoomr\.Zomr: there is no such object"):
        make("method", {"_target_": "zoomr.Zomr"})


def test_an_option_of_another_method_is_refused_before_a_directory_is_made(tmp_path):
    settings = {"_target_": "zoomr.ZoomR", "recent": 3}
    with pytest.raises(UserError, match=r"method\.recent: ZoomR has no such setting"):
        Run.open(tmp_path, "generate", "x", settings, {}, {}, "", check=lambda: make("method", settings))
    assert not list(tmp_path.iterdir())


def test_a_run_that_was_made_before_is_not_checked_again(tmp_path):
    Run.open(tmp_path, "generate", "x", {"a": 1}, {}, {}, "").finish({}, [])

    def never():
        raise AssertionError

    assert Run.open(tmp_path, "generate", "x", {"a": 1}, {}, {}, "", check=never).complete
