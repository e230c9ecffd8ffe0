"""A batch that the provider works through: submitted once, collected whenever, by whoever."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

import mull
from batch_servers import KEY, PlayedAnthropic, PlayedOpenAI
from mull.agent.batch import provider
from mull.testing.server import Reply

APIS = {
    "openai": (PlayedOpenAI, "openai/gpt-4.1-mini", {"dialect": "openai-chat"}),
    "responses": (PlayedOpenAI, "openai/gpt-5-mini", {}),
    "anthropic": (PlayedAnthropic, "anthropic/claude-sonnet-4-5", {}),
}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(provider, "FIRST_LOOK", 0.001)


@pytest.fixture(params=APIS)
def played(request):
    kind, model, options = APIS[request.param]
    with kind() as server:
        server.model = model
        server.options = {"base_url": server.url, "key": KEY, "progress": False, **options}
        yield server


def run(played, items, **options):
    return mull.batch(items, played.model, provider_batch=True, **{**played.options, **options})


def texts(results):
    return [one.result.text if one.result else type(one.error).__name__ for one in results]


def test_answers_with_their_thinking_at_half_the_price(played):
    results = run(played, ["a", "b", {"prompt": "c", "id": "mine"}], max_tokens=2000).results()
    assert texts(results) == ["A", "B", "C"]
    assert [one.result.thinking for one in results] == ["about a", "about b", "about c"]
    facts = mull.resolve(played.model).facts
    price = (facts.cost["input"] + facts.cost["output"]) / 2
    assert [one.result.cost for one in results] == [pytest.approx(price)] * 3
    assert any(note.about == "cost" and "50%" in note.text for note in results[0].result.notes)
    thought = results[0].result.message.blocks[0]
    if "claude" in played.model:
        assert thought.signature == "sig-a"
    if "gpt-5" in played.model:
        assert thought.encrypted == "sealed"


def test_the_requests_are_those_of_single_questions(played):
    run(played, ["a", "b"], max_tokens=2000, system="be brief").results()
    if isinstance(played, PlayedOpenAI):
        lines = [json.loads(line) for line in played.files["file-0"].splitlines()]
        bodies = [line["body"] for line in lines]
        url = "/v1/responses" if "gpt-5" in played.model else "/v1/chat/completions"
        assert {line["url"] for line in lines} == {url}
        assert {line["method"] for line in lines} == {"POST"}
        (created,) = played.sent("POST", "/batches")
        token = lines[0]["custom_id"].partition("-")[0]
        assert created.json == {
            "input_file_id": "file-0",
            "endpoint": url,
            "completion_window": "24h",
            "metadata": {"mull": token},
        }
        assert "be brief" in json.dumps(bodies[0])
    else:
        (created,) = played.sent("POST", "/messages/batches")
        lines = created.json["requests"]
        bodies = [line["params"] for line in lines]
        assert bodies[0]["system"][0]["text"] == "be brief"
    assert len({line["custom_id"] for line in lines}) == 2
    assert not any(body.get("stream") for body in bodies)


def test_another_process_collects_it_later(played, tmp_path):
    file, items = tmp_path / "out.jsonl", ["a", "b", "c"]
    played.is_over = False
    assert run(played, items, file=file, wait=False).results() == []
    assert run(played, items, file=file, wait=False).results() == []
    played.is_over = True
    results = run(played, items, file=file).results()
    assert texts(results) == ["A", "B", "C"]
    assert len(played.batches) == 1
    again = run(played, items, file=file)
    assert all(one.stored for one in again.results())
    assert len(played.batches) == 1
    assert again.progress.cost.known == pytest.approx(sum(one.result.cost for one in results))


def test_a_run_with_fewer_items_leaves_the_answers_of_the_others(played, tmp_path):
    file = tmp_path / "out.jsonl"
    played.is_over = False
    run(played, ["a", "b", "c"], file=file, wait=False).results()
    played.is_over = True
    assert texts(run(played, ["b"], file=file).results()) == ["B"]
    assert [one.stored for one in run(played, ["b"], file=file).results()] == [True]
    assert texts(run(played, ["a", "b", "c"], file=file).results()) == ["A", "B", "C"]
    assert len(played.batches) == 1
    assert b'"collected"' in file.read_bytes()


def test_only_what_is_new_is_submitted(played, tmp_path):
    file = tmp_path / "out.jsonl"
    run(played, ["a"], file=file).results()
    played.is_over = False
    run(played, ["a", "b"], file=file, wait=False).results()
    played.is_over = True
    assert texts(run(played, ["a", "b", "c"], file=file).results()) == ["A", "B", "C"]
    assert len(played.batches) == 3


def test_refusals_are_errors_of_their_items_and_asked_again_by_the_next_run(played, tmp_path):
    file, items = tmp_path / "out.jsonl", ["a", "refuse", "expire"]
    results = run(played, items, file=file).results()
    kind = "ContentFilterError" if isinstance(played, PlayedOpenAI) else "OverloadedError"
    assert texts(results) == ["A", kind, "RemoteError"]
    again = run(played, items, file=file).results()
    assert [one.stored for one in again] == [True, False, False]
    assert len(played.batches) == 2


def test_a_batch_that_was_created_unseen_is_found_again(played, tmp_path):
    file, items = tmp_path / "out.jsonl", ["a", "b"]
    played.lost = 1
    with pytest.raises(mull.NetworkError):
        run(played, items, file=file).results()
    assert len(played.batches) == 1
    assert texts(run(played, items, file=file).results()) == ["A", "B"]
    assert len(played.batches) == 1


def test_a_batch_that_was_never_created_is_submitted_again(played, tmp_path):
    file, items = tmp_path / "out.jsonl", ["a", "b"]
    played.lost = 1
    with pytest.raises(mull.NetworkError):
        run(played, items, file=file).results()
    played.batches.clear()
    batch = run(played, items, file=file)
    assert texts(batch.results()) == ["A", "B"]
    assert batch.notes == ("a batch of 2 items was not found at the provider: submitted again",)


def test_a_refused_batch_is_not_looked_for(played, tmp_path):
    file = tmp_path / "out.jsonl"
    error = {"error": {"message": f"no, {KEY}", "type": "x"}, "type": "error"}
    played.refusal = Reply.json(error, 401)
    with pytest.raises(mull.AuthenticationError) as raised:
        run(played, ["a"], file=file).results()
    assert KEY not in str(raised.value) + str(vars(raised.value)) + file.read_text()
    played.refusal = None
    assert texts(run(played, ["a"], file=file).results()) == ["A"]


def test_it_can_be_cancelled_by_another_process(played, tmp_path):
    file, items = tmp_path / "out.jsonl", ["a", "b"]
    played.is_over = False
    run(played, items, file=file, wait=False).results()
    run(played, items, file=file).cancel()
    (batch,) = played.batches.values()
    assert batch.get("status", batch.get("processing_status")) in ("cancelling", "canceling")
    played.is_over = True
    results = run(played, items, file=file, wait=False).results()
    if isinstance(played, PlayedOpenAI):  # what was answered before it ended is kept
        assert texts(results) == ["A", "RemoteError"]
        assert "is cancelled" in str(results[1].error)


@dataclass
class City:
    name: str


def test_values_by_schema(played):
    (one,) = run(played, ["paris"], schema=City).results()
    assert isinstance(one.error, mull.MisfitError)  # the played model shouts, and that is no JSON


def test_an_item_that_cannot_be_sent_does_not_hold_up_the_others(played):
    assert texts(run(played, ["a", {"prompt": "b", "max_tokens": -1}]).results()) == [
        "A",
        "LocalError",
    ]


def test_items_for_other_models_go_in_batches_of_their_own(played):
    other = "openai/gpt-4.1" if "gpt" in played.model else "anthropic/claude-haiku-4-5"
    results = run(played, ["a", {"prompt": "b", "model": other}, "c"]).results()
    assert texts(results) == ["A", "B", "C"]
    assert results[1].result.model == other
    assert len(played.batches) == 2


def test_more_than_a_batch_may_hold_goes_in_several(played, monkeypatch):
    api = provider.APIS[mull.resolve(played.model).compat.batches]
    monkeypatch.setattr(type(api), "most_lines", 2)
    items = [f"q{at}" for at in range(5)]
    assert texts(run(played, items).results()) == [item.upper() for item in items]
    assert len(played.batches) == 3


def test_a_crash_while_collecting_asks_nothing_again(played, tmp_path):
    file, items = tmp_path / "out.jsonl", ["a", "b", "c"]
    run(played, items, file=file).results()
    lines = file.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if b'"collected"' not in line]
    answers = [line for line in kept if b'"result"' in line]
    file.write_bytes(b"".join(line for line in kept if line not in answers[1:]))
    results = run(played, items, file=file).results()
    assert texts(results) == ["A", "B", "C"]
    assert sorted(one.stored for one in results) == [False, False, True]
    assert len(played.batches) == 1


def test_what_cannot_be_is_told_at_once():
    with pytest.raises(mull.LocalError, match="needs a file"):
        mull.batch(["a"], "openai/gpt-4.1", key=KEY, provider_batch=True, wait=False)
    with pytest.raises(mull.LocalError, match="says what it submitted"):
        mull.batch(["a"], "openai/gpt-4.1", key=KEY, provider_batch=True).cancel()
    with pytest.raises(mull.LocalError, match="only a provider_batch can be cancelled"):
        mull.batch(["a"], "openai/gpt-4.1", key=KEY).cancel()
