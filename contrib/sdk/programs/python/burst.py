"""What the programs beside have in common: the calls, and a line of JSON for each on standard output, for the test that runs them,
which says when to begin."""

import json
import os
import sys
import time

CALLS = int(sys.argv[1])
URL = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
HEADERS = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}


def asked(i, **more):
    messages = [{"role": "user", "content": "Why is the sky blue?"}]
    return {"model": "gpt-4o", "max_tokens": 60 + 37 * i % 76, "messages": messages, **more}


def answered(sdk, i, began, status, answer=None, **more):
    line = {"sdk": sdk, "call": str(i), "ms": round((time.monotonic() - began) * 1000), **more}
    if status == 200:
        line.update(text=answer["text"], input=answer["input"], output=answer["output"])
    else:
        line["error"] = {"class": "HTTPStatus", "status": status}
    print(json.dumps(line), flush=True)


def whole(answer):
    usage = answer["usage"]
    return {"text": answer["choices"][0]["message"]["content"], "input": usage["prompt_tokens"], "output": usage["completion_tokens"]}


def streamed(lines):
    """Reads server-sent events of a chat."""
    text, usage = "", None
    for line in lines:
        if line.startswith("data: {"):
            chunk = json.loads(line[6:])
            text += "".join(c["delta"].get("content") or "" for c in chunk["choices"])
            usage = chunk.get("usage") or usage
    return {"text": text, "input": usage["prompt_tokens"], "output": usage["completion_tokens"]}


print("ready", flush=True)
sys.stdin.readline()
