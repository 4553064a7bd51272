"""N13: a proxy in the environment neither cuts a stage off the server it has started nor goes unnamed in an error."""

import pytest
from omegaconf import OmegaConf

from data_gen.summarize import summarize
from data_gen.teacher.faults import proxy_hint
from pipeline.cli import CONFIGS
from tests.data_gen.conftest import prepared_run, rows, summarize_run, texts, trace
from tests.data_gen.scripted_server import Answer, serve
from zoomr.errors import UserError

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
DEAD = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy"])
@pytest.mark.parametrize("proxy", [DEAD, "socks5://127.0.0.1:9", "nonsense://x"])
def test_a_server_of_the_stage_is_reached_directly(configure, tmp_path, monkeypatch, variable, proxy):
    monkeypatch.setenv(variable, proxy)
    prepared_run(tmp_path / "runs", [trace(0, ["Line A=74 A for ada: ke above zero.\nSo A for ada: ke#74 it is."])])
    cfg = configure(None, **{"summarize.failed_share": 0.0})
    cfg.teacher = OmegaConf.load(CONFIGS / "teacher" / "local.yaml")
    cfg.teacher.model = "ledger-rule"
    summarize(cfg)
    assert [row["summary"] for row in rows(summarize_run(cfg) / "summaries.jsonl")] == ["ada: ke above zero"]


@pytest.mark.parametrize("variable", ["http_proxy", "ALL_PROXY"])
def test_another_local_server_goes_through_the_proxy_and_the_error_names_it(configure, tmp_path, monkeypatch, variable):
    monkeypatch.setenv(variable, DEAD)
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 3))])
    with serve() as server:
        with pytest.raises(UserError, match=f"the proxy in {variable}; no_proxy=127.0.0.1 lets them go straight"):
            summarize(configure(server.url))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        summarize(configure(server.url, **{"summarize.previous": 1}))
    assert len(server.calls) == 3


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "nonsense://x"])
def test_a_proxy_that_cannot_be_used_is_one_sentence(configure, tmp_path, monkeypatch, proxy):
    monkeypatch.setenv("all_proxy", proxy)
    prepared_run(tmp_path / "runs", [trace(0, texts(0, 3))])
    with serve() as server, pytest.raises(UserError, match="cannot be asked: .*the proxy in all_proxy"):
        summarize(configure(server.url))


@pytest.mark.parametrize(("status", "patience"), [(403, {}), (407, {}), (503, {"summarize.patience.faults": 1})])
def test_a_proxy_that_answers_in_the_servers_place_is_named(configure, tmp_path, monkeypatch, status, patience):
    with serve(lambda call: Answer(status=status, body={})) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        prepared_run(tmp_path / "runs", [trace(n, texts(n, 40)) for n in range(5)])
        with pytest.raises(UserError, match="the proxy in http_proxy; no_proxy=localhost"):
            summarize(configure("http://localhost:8123/v1", **patience))


def test_the_variable_that_holds_for_a_url_is_named(monkeypatch):
    assert proxy_hint("http://127.0.0.1:8000/v1") == ""
    monkeypatch.setenv("https_proxy", DEAD)
    assert proxy_hint("http://127.0.0.1:8000/v1") == ""
    assert "https_proxy; no_proxy=host.example" in proxy_hint("https://host.example/v1")
    monkeypatch.setenv("no_proxy", "localhost,.example")
    assert proxy_hint("https://host.example/v1") == proxy_hint("https://localhost:1/v1") == ""
