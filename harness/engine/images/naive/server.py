"""A naive server: Transformers behind FastAPI, one request at a time.

It is the baseline of the concurrency experiment: correct, streaming, and
without any batching. Generation runs on one worker thread; waiting requests
stand in a queue of the event loop and hold no thread of their own, since a
lock inside FastAPI's thread pool would deadlock once as many clients wait as
the pool has threads. What it does not do it refuses, so that no option of a
request is dropped in silence.
"""

import argparse
import asyncio
import json
import threading
import time
import uuid
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import torch
import transformers
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from tokenizers.decoders import DecodeStream
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LogitsProcessorList,
    MinNewTokensLengthLogitsProcessor,
    StoppingCriteria,
    StoppingCriteriaList,
)

END = object()  # the last item of a job's queue


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a folder with the model's files")
    parser.add_argument("--host", default="0.0.0.0")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--served-model-name", default="naive")
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float16", "float32"])
    parser.add_argument("--max-model-len", type=int, help="prompt and answer together, in tokens; default: what the model allows")
    parser.add_argument(
        "--on-disconnect",
        default="finish",
        choices=["finish", "cancel"],
        help="what becomes of a request whose client has left: go on with it, or stop",
    )
    return parser.parse_args()


class Refused(Exception):
    """A request that this server can't serve as it was asked to."""

    def __init__(self, message, status=400):
        super().__init__(message)
        self.status = status


# What a request may hold. Greedy decoding makes the sampling options without
# effect; the others are looked at below.
KNOWN = {
    "model", "messages", "prompt", "max_tokens", "max_completion_tokens", "min_tokens", "ignore_eos", "n", "stream",
    "stream_options", "return_token_ids", "repetition_penalty", "user", "temperature", "top_p", "top_k", "min_p", "seed",
    "presence_penalty", "frequency_penalty",
}  # fmt: skip
ONLY = {"n": 1, "temperature": 0, "presence_penalty": 0, "frequency_penalty": 0}


def whole(body, name, default, least):
    value = body.get(name)
    if value is None:
        return default
    if type(value) is not int or value < least:
        raise Refused(f"{name} is {value!r}: send a whole number of at least {least}")
    return value


class Job:
    """One request on its way through the queue."""

    def __init__(self, server, body, ids, loop):
        self.limit = whole(body, "max_completion_tokens", None, 1) or whole(body, "max_tokens", 128, 1)
        self.least = whole(body, "min_tokens", 0, 0)
        self.ignore_eos = bool(body.get("ignore_eos"))
        self.repetition_penalty = body.get("repetition_penalty")
        if len(ids) + self.limit > server.max_model_len:
            raise Refused(f"{len(ids)} tokens of prompt and {self.limit} of answer are more than {server.max_model_len}: ask for fewer")
        if not ids:
            raise Refused("the prompt is empty: send at least one token")
        self.ids = ids
        self.eos = server.eos
        self.loop = loop
        self.tokens = asyncio.Queue()
        self.left = threading.Event()  # the client has gone, and this server cares
        self.waits = True  # in the queue; only the event loop changes it

    def put(self, item):
        self.loop.call_soon_threadsafe(self.tokens.put_nowait, item)

    def ends(self, token):
        return token in self.eos and not self.ignore_eos


class Ended(StoppingCriteria):
    """Stops at the end of the answer or when its client has left. generate()
    has no end-of-sequence token of its own here: with one it would never
    produce it under ignore_eos, where other servers go on behind it."""

    def __init__(self, job):
        self.job = job

    def __call__(self, input_ids, scores, **_):
        over = self.job.left.is_set() or self.job.ends(int(input_ids[0, -1]))
        return torch.full((1,), over, dtype=torch.bool, device=input_ids.device)


class Streamer:
    """What generate() hands each token to: first the prompt, then one by one."""

    def __init__(self, server, job):
        self.server, self.job, self.prompt_seen = server, job, False

    def put(self, ids):
        if not self.prompt_seen:
            self.prompt_seen = True
            return
        self.server.generated += 1
        self.job.put(int(ids.flatten()[0]))

    def end(self):
        pass


class Server:
    def __init__(self, args):
        self.args = args
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.tokenizer = AutoTokenizer.from_pretrained(args.model)
        self.model = AutoModelForCausalLM.from_pretrained(args.model, dtype=getattr(torch, args.dtype)).to(self.device)
        self.model.eval()
        config = self.model.generation_config
        self.eos = set(config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]) - {None}
        self.pad = config.pad_token_id if config.pad_token_id is not None else min(self.eos, default=0)
        config.eos_token_id = None
        self.max_model_len = min(args.max_model_len or self.model.config.max_position_embeddings, self.model.config.max_position_embeddings)
        self.queue = deque()
        self.arrived = asyncio.Event()
        self.thread = ThreadPoolExecutor(1)
        self.current = None
        self.generated = 0
        self.read = 0

    @property
    def waiting(self):
        return len(self.queue)

    async def work(self):
        """Takes jobs in the order of their arrival, one at a time, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            while not self.queue:
                self.arrived.clear()
                await self.arrived.wait()
            job = self.current = self.queue.popleft()
            job.waits = False
            try:
                await loop.run_in_executor(self.thread, self.generate, job)
            except Exception as error:  # the request fails, the server goes on
                job.tokens.put_nowait(error)
            finally:
                self.current = None
                job.tokens.put_nowait(END)

    @torch.inference_mode()
    def generate(self, job):
        self.read += len(job.ids)
        prompt = torch.tensor([job.ids], device=self.device)
        processors = LogitsProcessorList()
        if job.least and self.eos:
            processors.append(MinNewTokensLengthLogitsProcessor(len(job.ids), job.least, sorted(self.eos), device=self.device))
        options = {} if job.repetition_penalty is None else {"repetition_penalty": float(job.repetition_penalty)}
        self.model.generate(
            input_ids=prompt,
            attention_mask=torch.ones_like(prompt),
            streamer=Streamer(self, job),
            logits_processor=processors,
            stopping_criteria=StoppingCriteriaList([Ended(job)]),
            do_sample=False,
            temperature=None,
            top_p=None,
            top_k=None,
            max_new_tokens=job.limit,
            pad_token_id=self.pad,
            **options,
        )

    def submit(self, job):
        self.queue.append(job)
        self.arrived.set()

    def leave(self, job):
        """A client has gone, or has its whole answer: then there is no more to stop."""
        if self.args.on_disconnect == "finish":
            return
        job.left.set()
        if job.waits:
            job.waits = False
            self.queue.remove(job)
            job.tokens.put_nowait(END)

    def close(self):
        for job in self.queue:
            job.left.set()
        self.queue.clear()
        if self.current:
            self.current.left.set()
        self.thread.shutdown(wait=False, cancel_futures=True)

    async def pieces(self, job):
        """Yields (token id, text it completed, reason or None). Text that ends in
        an unfinished character waits for the token that finishes it, or for the
        end, so that all ids together are all the text."""
        stream = DecodeStream(ids=job.ids, skip_special_tokens=True)
        ids, sent = [], 0
        while True:
            item = await job.tokens.get()
            if item is END:
                return
            if isinstance(item, Exception):
                raise item
            ids.append(item)
            text = stream.step(self.tokenizer.backend_tokenizer, item) or ""
            sent += len(text)
            reason = "stop" if job.ends(item) else "length" if len(ids) >= job.limit else None
            if reason:
                text += self.tokenizer.decode(ids, skip_special_tokens=True)[sent:]
            yield item, text, reason


def build(args):
    server = None

    @asynccontextmanager
    async def lifespan(_):
        nonlocal server
        server = Server(args)
        worker = asyncio.create_task(server.work())
        yield
        worker.cancel()
        server.close()

    app = FastAPI(lifespan=lifespan)

    @app.exception_handler(Refused)
    async def refused(_, error):
        return JSONResponse({"error": {"message": str(error), "type": "invalid_request_error", "code": error.status}}, error.status)

    @app.get("/health")
    async def health():
        return PlainTextResponse("")

    @app.get("/version")
    async def version():
        return {"version": f"naive 1, transformers {transformers.__version__}, torch {torch.__version__}, {server.device}, {args.dtype}"}

    @app.get("/v1/models")
    async def models():
        return {"object": "list", "data": [{"id": args.served_model_name, "object": "model", "owned_by": "naive", "root": args.model, "max_model_len": server.max_model_len}]}

    @app.get("/metrics")
    async def metrics():
        # vLLM's names, so that one reader serves for both.
        return PlainTextResponse(
            "# TYPE vllm:num_requests_running gauge\n"
            f"vllm:num_requests_running {1 if server.current else 0}\n"
            "# TYPE vllm:num_requests_waiting gauge\n"
            f"vllm:num_requests_waiting {server.waiting}\n"
            "# TYPE vllm:prompt_tokens_total counter\n"
            f"vllm:prompt_tokens_total {server.read}\n"
            "# TYPE vllm:generation_tokens_total counter\n"
            f"vllm:generation_tokens_total {server.generated}\n"
        )

    def templated(messages, generation_prompt=True):
        try:
            return list(server.tokenizer.apply_chat_template(messages, add_generation_prompt=generation_prompt, return_dict=True)["input_ids"])
        except Exception as error:
            raise Refused(f"messages do not fit the model's chat template: {error}") from error

    def encoded(prompt, special=True):
        if isinstance(prompt, list) and prompt and all(type(token) is int for token in prompt):
            return prompt
        if not isinstance(prompt, str):
            raise Refused("prompt is neither a text nor a list of token ids: send one of them")
        return server.tokenizer(prompt, add_special_tokens=special)["input_ids"]

    @app.post("/tokenize")
    async def tokenize(body: dict):
        if "messages" in body:
            ids = templated(body["messages"], body.get("add_generation_prompt", True))
        else:
            ids = encoded(body.get("prompt", ""), body.get("add_special_tokens", True))
        return {"count": len(ids), "max_model_len": server.max_model_len, "tokens": ids}

    @app.post("/v1/chat/completions")
    async def chat(body: dict, request: Request):
        check(body)
        return await answer(body, templated(body.get("messages")), request, chat=True)

    @app.post("/v1/completions")
    async def completions(body: dict, request: Request):
        check(body)
        return await answer(body, encoded(body.get("prompt")), request, chat=False)

    def check(body):
        if body.get("model", args.served_model_name) != args.served_model_name:
            raise Refused(f"there is no model {body['model']!r} here, only {args.served_model_name!r}", 404)
        unknown = sorted(name for name in body if name not in KNOWN and body[name] is not None)
        if unknown:
            raise Refused(f"this server does not know {', '.join(unknown)}: leave it out")
        for name, value in ONLY.items():
            # Left out, temperature is 1 by the protocol, and the others are as here.
            if body.get(name, 1 if name == "temperature" else value) != value:
                raise Refused(f"this server decodes greedily and answers once: send {name} {value}")

    async def answer(body, ids, request, chat):
        job = Job(server, body, ids, asyncio.get_running_loop())
        head = {
            "id": ("chatcmpl-" if chat else "cmpl-") + uuid.uuid4().hex,
            "object": ("chat.completion" if chat else "text_completion") + (".chunk" if chat and body.get("stream") else ""),
            "created": int(time.time()),
            "model": args.served_model_name,
        }
        server.submit(job)
        gone = asyncio.create_task(watch(request, job))
        if body.get("stream"):
            return StreamingResponse(stream(body, job, head, chat, gone), media_type="text/event-stream")
        ids, texts, reason = [], [], None
        try:
            async for token, text, why in server.pieces(job):
                ids.append(token)
                texts.append(text)
                reason = why or reason
        except Exception as error:
            return JSONResponse({"error": {"message": repr(error), "type": "server_error", "code": 500}}, 500)
        finally:
            gone.cancel()
        said = {"message": {"role": "assistant", "content": "".join(texts)}} if chat else {"text": "".join(texts)}
        choice = {"index": 0, **said, "finish_reason": reason}
        if body.get("return_token_ids"):
            choice["token_ids"] = ids
        return {**head, "choices": [choice], "usage": usage(job, len(ids))}

    async def watch(request, job):
        """Waits for the client to leave, whether or not anything is written to it:
        a request that only waits would not be missed otherwise."""
        while (await request.receive())["type"] != "http.disconnect":
            pass
        server.leave(job)

    def usage(job, count):
        return {"prompt_tokens": len(job.ids), "completion_tokens": count, "total_tokens": len(job.ids) + count}

    async def stream(body, job, head, chat, gone):
        def event(choices, **more):
            return "data: " + json.dumps({**head, "choices": choices, **more}, ensure_ascii=False) + "\n\n"

        def choice(text, reason, **more):
            said = {"delta": {"content": text}} if chat else {"text": text}
            return {"index": 0, **said, "finish_reason": reason, **more}

        want_ids = body.get("return_token_ids")
        count = 0
        try:
            if chat:
                first = {"prompt_token_ids": job.ids} if want_ids else {}
                yield event([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}], **first)
            async for token, text, reason in server.pieces(job):
                count += 1
                yield event([choice(text, reason, **({"token_ids": [token]} if want_ids else {}))])
            if (body.get("stream_options") or {}).get("include_usage"):
                yield event([], usage=usage(job, count))
            yield "data: [DONE]\n\n"
        except Exception as error:
            yield "data: " + json.dumps({"error": {"message": repr(error), "type": "server_error", "code": 500}}) + "\n\n"
        finally:
            gone.cancel()
            server.leave(job)  # without effect once all of it was generated

    return app


if __name__ == "__main__":
    args = arguments()
    uvicorn.run(build(args), host=args.host, port=args.port, log_level="info", access_log=False, timeout_graceful_shutdown=5)
