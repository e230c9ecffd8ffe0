"""Providers' batch APIs, played: what is submitted is answered when the test says so."""

from __future__ import annotations

import json
from email import message_from_bytes

from mull.testing.server import Reply, ScriptedServer

KEY = "canary-0123456789"


def openai_answer(body):
    return responses_answer(body) if "input" in body else chat_answer(body)


def responses_answer(body):
    said = body["input"][-1]["content"]
    text = said if isinstance(said, str) else said[0]["text"]
    thought = {"type": "reasoning", "id": "rs_1", "encrypted_content": "sealed"}
    thought["summary"] = [{"type": "summary_text", "text": f"about {text}"}]
    answer = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    answer["content"] = [{"type": "output_text", "text": text.upper(), "annotations": []}]
    return {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "output": [thought, answer],
        "usage": {"input_tokens": 1_000_000, "output_tokens": 1_000_000},
    }


def chat_answer(body):
    text = body["messages"][-1]["content"]
    message = {"role": "assistant", "content": text.upper(), "reasoning_content": f"about {text}"}
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 1_000_000}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "c1", "object": "chat.completion", "choices": [choice], "usage": usage}


def claude_answer(body):
    said = body["messages"][-1]["content"]
    text = said if isinstance(said, str) else said[0]["text"]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [
            {"type": "thinking", "thinking": f"about {text}", "signature": f"sig-{text}"},
            {"type": "text", "text": text.upper()},
        ],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1_000_000, "output_tokens": 1_000_000},
    }


class Played:
    """What both servers have in common: batches by id, and when they are over."""

    def __init__(self):
        self.batches, self.files, self.is_over, self.lost = {}, {}, True, 0
        self.refusal = None
        self.server = ScriptedServer(self.reply)

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop()

    @property
    def url(self):
        return self.server.url + "/v1"

    def sent(self, method, path):
        found = [one for one in self.server.requests if one.method == method]
        return [one for one in found if one.path.removeprefix("/v1") == path]

    def reply(self, request):
        path = request.path.removeprefix("/v1").partition("?")[0]
        assert KEY in str(request.headers)
        if self.refusal is not None:
            return self.refusal
        made = self.answer(request, path.strip("/").split("/"))
        if request.method == "POST" and self.lost and self.creates(path):
            self.lost -= 1
            return Reply.hang_up()
        return made


class PlayedOpenAI(Played):
    """`/v1/files` and `/v1/batches`."""

    def creates(self, path):
        return path == "/batches"

    def answer(self, request, path):
        match request.method, path:
            case "POST", ["files"]:
                name = f"file-{len(self.files)}"
                self.files[name] = uploaded(request)
                return Reply.json({"id": name, "object": "file", "purpose": "batch"})
            case "POST", ["batches"]:
                name = f"batch_{len(self.batches)}"
                self.batches[name] = {**request.json, "id": name, "status": "in_progress"}
                return Reply.json(self.told(name))
            case "GET", ["batches"]:
                return Reply.json({"object": "list", "data": [self.told(n) for n in self.batches]})
            case "GET", ["batches", name]:
                return Reply.json(self.told(name))
            case "POST", ["batches", name, "cancel"]:
                self.batches[name]["status"] = "cancelling"
                return Reply.json(self.told(name))
            case "GET", ["files", name, "content"]:
                return Reply(200, {}, (self.files[name],))
        return Reply.json({"error": {"message": f"no {path}"}}, 404)

    def told(self, name):
        batch = self.batches[name]
        lines = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
        if self.is_over and batch["status"] in ("in_progress", "cancelling"):
            self.finish(batch, lines)
        is_done = batch["status"] == "completed"
        counts = {"total": len(lines), "completed": is_done * len(lines), "failed": 0}
        told = {"object": "batch", "created_at": 1_800_000_000, "request_counts": counts}
        return {**told, **batch}

    def finish(self, batch, lines):
        if batch["status"] == "cancelling":
            batch["status"] = "cancelled"
            lines = lines[:1]
        else:
            batch["status"] = "completed"
        good, bad = [], []
        for line in reversed(lines):
            row = {"custom_id": line["custom_id"], **self.outcome(openai_answer(line["body"]))}
            (
                good if row["error"] is None and row["response"]["status_code"] == 200 else bad
            ).append(row)
        for kind, rows in (("output_file_id", good), ("error_file_id", bad)):
            if rows:
                name = f"{batch['id']}-{kind}"
                self.files[name] = "\n".join(json.dumps(row) for row in rows).encode()
                batch[kind] = name

    @staticmethod
    def outcome(body):
        said = json.dumps(body)
        response = {"status_code": 200, "request_id": "req_1", "body": body}
        if "refuse" in said:
            error = {"error": {"message": "flagged", "code": "content_filter"}}
            response = {"status_code": 400, "request_id": "req_2", "body": error}
        if "expire" in said:
            return {"response": None, "error": {"code": "batch_expired", "message": "late"}}
        return {"response": response, "error": None}


class PlayedAnthropic(Played):
    """`/v1/messages/batches`."""

    def creates(self, path):
        return path == "/messages/batches"

    def answer(self, request, path):
        assert request.headers["anthropic-version"]
        match request.method, path:
            case "POST", ["messages", "batches"]:
                name = f"msgbatch_{len(self.batches)}"
                rows = request.json["requests"]
                self.batches[name] = {"id": name, "rows": rows, "processing_status": "in_progress"}
                return Reply.json(self.told(name))
            case "GET", ["messages", "batches"]:
                return Reply.json({"data": [self.told(n) for n in self.batches], "has_more": False})
            case "GET", ["messages", "batches", name]:
                return Reply.json(self.told(name))
            case "POST", ["messages", "batches", name, "cancel"]:
                self.batches[name]["processing_status"] = "canceling"
                return Reply.json(self.told(name))
            case "GET", ["messages", "batches", name, "results"]:
                rows = [self.row(one) for one in reversed(self.batches[name]["rows"])]
                return Reply(200, {}, ("\n".join(map(json.dumps, rows)).encode(),))
        return Reply.json({"type": "error", "error": {"type": "not_found_error"}}, 404)

    def told(self, name):
        batch = self.batches[name]
        if self.is_over:
            batch["processing_status"] = "ended"
        over = batch["processing_status"] == "ended"
        kinds = ("processing", "succeeded", "errored", "canceled", "expired")
        counts = dict.fromkeys(kinds, 0)
        counts["succeeded" if over else "processing"] = len(batch["rows"])
        return {
            "id": name,
            "type": "message_batch",
            "processing_status": batch["processing_status"],
            "request_counts": counts,
            "created_at": "2099-01-01T00:00:00Z",
            "expires_at": "2099-01-02T00:00:00Z",
            "ended_at": None,
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": f"{self.url}/messages/batches/{name}/results" if over else None,
        }

    def row(self, one):
        message = claude_answer(one["params"])
        said = message["content"][0]["thinking"]
        result = {"type": "succeeded", "message": message}
        if "refuse" in said:
            error = {"type": "overloaded_error", "message": "Overloaded"}
            whole = {"type": "error", "error": error, "request_id": "req_2"}
            result = {"type": "errored", "error": whole}
        elif "expire" in said:
            result = {"type": "expired"}
        return {"custom_id": one["custom_id"], "result": result}


def uploaded(request):
    """The file in a form, read by Python's own reader of such bodies."""
    head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    parts = {
        part.get_param("name", header="content-disposition"): part
        for part in message_from_bytes(head + request.body).get_payload()
    }
    assert parts["purpose"].get_payload() == "batch"
    assert parts["file"].get_filename() == "batch.jsonl"
    return parts["file"].get_payload(decode=True)
