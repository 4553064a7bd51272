"""Names of methods: one a cell, with every setting that differs from the method's defaults. B13."""

import hydra
import pytest
from omegaconf import OmegaConf

from eval.cells import method_settings
from eval.reporting.names import look, method_label, method_title, methods, title_of
from pipeline.cli import CONFIGS

ZOOMR = {key: value for key, value in methods()["zoomr"].items() if key not in ("name", "show")} | {"window": 80}
CHANGES = [
    {},
    {"window": 64},
    {"voters": [[2, 0], [2, 1]]},
    {"voters": [[2, 0], [2, 2]]},
    {"voters": [[layer, head] for layer in range(9) for head in range(8)]},
    {"voters": [[layer, head] for layer in range(9) for head in range(9)]},
    {"keep_open": True},
    {"every": 35},
    {"force_after": 128},
    {"c": 3},
    {"k": 1},
    {"a_setting_of_tomorrow": 0.5},
]


def test_no_two_settings_share_a_name():
    policies = [ZOOMR | change for change in CHANGES]
    assert len({method_label("zoomr", policy) for policy in policies}) == len(CHANGES)
    assert len({method_title("zoomr", policy, {"window": 80}) for policy in policies}) == len(CHANGES)


def test_names_say_what_differs_from_the_defaults_and_no_more():
    assert method_title("zoomr", ZOOMR, {"window": 80}) == "ZoomR (c=2, k=2)"
    assert method_title("zoomr", ZOOMR, {"window": 512}) == "ZoomR (c=2, k=2, window=80)"
    assert method_label("zoomr", ZOOMR | {"voters": [[2, 0], [2, 1]]}) == "zoomr c2 k2 window 80 voters 2.0 2.1"
    reassigned = {"budget": 64, "positions": "reassigned", "keep_prompt": False}
    assert method_title("streaming_llm", reassigned, {}) == "StreamingLLM (budget=64, positions=reassigned)"
    kept = {"budget": "match", "keep_prompt": True}
    assert method_title("h2o", kept, {}) == method_title("h2o_prompt", kept, {}) == "H2O + prompt"
    assert method_label("h2o", kept) == method_label("h2o_prompt", kept) == "h2o with prompt"


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("h2o_prompt", "H2O + prompt"),
        ("zoomr c=3", "ZoomR, c=3"),
        ("zoomr_layerwise", "ZoomR, layerwise"),
        ("full_offload", "Full KV, offloaded"),
        ("keep_open", "keep open"),
        ("zoomrish", "zoomrish"),
    ],
)
def test_variants_are_called_by_their_method(name, title):
    assert title_of(name) == title


def test_every_method_has_a_look_of_its_own():
    looks = [look(name) for name in methods()]
    assert len({one.title for one in looks}) == len({one.order for one in looks}) == len(looks) >= 14
    assert len({(one.colour, one.marker) for one in looks}) == len(looks)


def test_what_a_method_looks_like_reaches_no_policy_and_no_identity():
    with hydra.initialize_config_dir(str(CONFIGS), version_base="1.3"):
        for method in methods():
            cfg = hydra.compose("eval", [f"method={method}"])
            name, policy = method_settings(cfg.method)
            assert name == method and "show" not in policy and "_target_" in policy
            assert "show" in OmegaConf.to_container(cfg.method)


def test_what_a_method_looks_like_shapes_no_adapter_either(monkeypatch, tmp_path):
    from train import sft

    opened = []
    monkeypatch.setattr(sft.Run, "open", lambda *args, **given: opened.append(given["settings"]))
    with hydra.initialize_config_dir(str(CONFIGS), version_base="1.3"):
        cfg = hydra.compose("train", ["+method@sft.policy=oracle_zoom"])
    sft.open_run(cfg, OmegaConf.to_container(cfg, resolve=True), tmp_path, 1)
    assert opened[0]["sft"]["policy"]["name"] == "oracle_zoom" and "show" not in opened[0]["sft"]["policy"]
