"""A naive server: Transformers behind FastAPI, one request at a time.

It is the baseline of the concurrency experiment: correct, streaming, and
without any batching. Generation runs on one worker thread; waiting requests
stand in a queue of the event loop and hold no thread of their own, since a
lock inside FastAPI's thread pool would deadlock once as many clients wait as
the pool has threads.
"""

import argparse
import asyncio
import json
import threading
import time
import uuid
from contextlib import asynccontextmanager

import torch
import transformers
import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from transformers import AutoModelForCausalLM, AutoTokenizer, StoppingCriteria, StoppingCriteriaList

END = object()  # the last item of a job's queue


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a folder with the model's files")
    parser.add_argument("--host", default="0.0.0.0")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--served-model-name", default="naive")
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float16", "float32"])
    parser.add_argument(
        "--on-disconnect",
        default="finish",
        choices=["finish", "cancel"],
        help="what becomes of a request whose client has left: go on with it, or stop",
    )
    return parser.parse_args()


class Job:
    """One request on its way through the queue."""

    def __init__(self, input_ids, limit, least, ignore_eos, loop):
        self.input_ids, self.limit, self.least, self.ignore_eos = input_ids, limit, least, ignore_eos
        self.loop = loop
        self.tokens = asyncio.Queue()
        self.left = threading.Event()  # the client has gone, and this server cares

    def put(self, item):
        self.loop.call_soon_threadsafe(self.tokens.put_nowait, item)


class Left(StoppingCriteria):
    def __init__(self, job):
        self.job = job

    def __call__(self, input_ids, scores, **_):
        return torch.full((input_ids.shape[0],), self.job.left.is_set(), dtype=torch.bool, device=input_ids.device)


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
        self.eos = set(self.model.generation_config.eos_token_id if isinstance(self.model.generation_config.eos_token_id, list)
                       else [self.model.generation_config.eos_token_id])
        self.jobs = asyncio.Queue()
        self.running = 0
        self.waiting = 0
        self.generated = 0
        self.read = 0

    async def work(self):
        """Takes jobs in the order of their arrival, one at a time, for ever."""
        while True:
            job = await self.jobs.get()
            self.waiting -= 1
            if job.left.is_set():
                continue
            self.running = 1
            try:
                await asyncio.to_thread(self.generate, job)
            except Exception as error:  # the request fails, the server goes on
                job.tokens.put_nowait(error)
            finally:
                self.running = 0
                job.tokens.put_nowait(END)

    @torch.inference_mode()
    def generate(self, job):
        self.read += job.input_ids.shape[1]
        self.model.generate(
            input_ids=job.input_ids,
            attention_mask=torch.ones_like(job.input_ids),
            streamer=Streamer(self, job),
            stopping_criteria=StoppingCriteriaList([Left(job)]),
            do_sample=False,
            temperature=None, top_p=None, top_k=None,
            max_new_tokens=job.limit,
            min_new_tokens=job.limit if job.ignore_eos else (job.least or None),
            pad_token_id=next(iter(self.eos)),
        )

    async def submit(self, body, input_ids):
        limit = body.get("max_completion_tokens") or body.get("max_tokens") or 128
        job = Job(input_ids, limit, body.get("min_tokens", 0), body.get("ignore_eos", False), asyncio.get_running_loop())
        self.waiting += 1
        await self.jobs.put(job)
        return job

    def leave(self, job):
        if self.args.on_disconnect == "cancel":
            job.left.set()

    async def pieces(self, job):
        """Yields (token id, text it completed, reason or None). Text that ends in
        an unfinished character waits for the next token."""
        ids, sent, count = [], "", 0
        while True:
            item = await job.tokens.get()
            if item is END:
                return
            if isinstance(item, Exception):
                raise item
            count += 1
            stop = item in self.eos and not job.ignore_eos
            ids.append(item)
            text = self.tokenizer.decode(ids, skip_special_tokens=True)
            new = "" if text.endswith("\ufffd") else text[len(sent):]
            sent += new
            yield item, new, "stop" if stop else "length" if count >= job.limit else None


def build(args):
    server = None

    @asynccontextmanager
    async def lifespan(_):
        nonlocal server
        server = Server(args)
        worker = asyncio.create_task(server.work())
        yield
        worker.cancel()

    app = FastAPI(lifespan=lifespan)

    @app.get("/health")
    async def health():
        return PlainTextResponse("")

    @app.get("/version")
    async def version():
        return {"version": "naive-1", "transformers": transformers.__version__, "torch": torch.__version__}

    @app.get("/v1/models")
    async def models():
        return {"object": "list", "data": [{"id": args.served_model_name, "object": "model", "owned_by": "naive", "root": args.model}]}

    @app.get("/metrics")
    async def metrics():
        # vLLM's names, so that one reader serves for both.
        return PlainTextResponse(
            "# TYPE vllm:num_requests_running gauge\n"
            f"vllm:num_requests_running {server.running}\n"
            "# TYPE vllm:num_requests_waiting gauge\n"
            f"vllm:num_requests_waiting {server.waiting}\n"
            "# TYPE vllm:prompt_tokens_total counter\n"
            f"vllm:prompt_tokens_total {server.read}\n"
            "# TYPE vllm:generation_tokens_total counter\n"
            f"vllm:generation_tokens_total {server.generated}\n"
        )

    @app.post("/tokenize")
    async def tokenize(body: dict):
        if "messages" in body:
            ids = server.tokenizer.apply_chat_template(body["messages"], add_generation_prompt=body.get("add_generation_prompt", True), return_dict=True)["input_ids"]
        else:
            ids = server.tokenizer(body.get("prompt", ""), add_special_tokens=body.get("add_special_tokens", True))["input_ids"]
        return {"count": len(ids), "max_model_len": server.model.config.max_position_embeddings, "tokens": ids}

    @app.post("/v1/chat/completions")
    async def chat(body: dict, request: Request):
        ids = server.tokenizer.apply_chat_template(body["messages"], add_generation_prompt=True, return_tensors="pt", return_dict=True)["input_ids"]
        return await answer(body, ids, chat=True)

    @app.post("/v1/completions")
    async def completions(body: dict, request: Request):
        ids = server.tokenizer(body["prompt"], return_tensors="pt")["input_ids"]
        return await answer(body, ids, chat=False)

    async def answer(body, input_ids, chat):
        if body.get("temperature", 1) not in (0, 0.0):
            raise HTTPException(400, "this server decodes greedily: send temperature 0")
        if body.get("n", 1) != 1:
            raise HTTPException(400, "this server answers once: send n 1 or leave it out")
        job = await server.submit(body, input_ids.to(server.device))
        head = {
            "id": ("chatcmpl-" if chat else "cmpl-") + uuid.uuid4().hex,
            "object": ("chat.completion" if chat else "text_completion") + (".chunk" if chat and body.get("stream") else ""),
            "created": int(time.time()),
            "model": args.served_model_name,
        }
        if body.get("stream"):
            return StreamingResponse(stream(body, job, head, chat), media_type="text/event-stream")
        ids, texts, reason = [], [], None
        try:
            async for token, text, why in server.pieces(job):
                ids.append(token)
                texts.append(text)
                reason = why or reason
        except asyncio.CancelledError:
            server.leave(job)
            raise
        except Exception as error:
            return JSONResponse({"error": {"message": repr(error), "type": "server_error"}}, 500)
        said = {"message": {"role": "assistant", "content": "".join(texts)}} if chat else {"text": "".join(texts)}
        choice = {"index": 0, **said, "finish_reason": reason}
        if body.get("return_token_ids"):
            choice["token_ids"] = ids
        return {**head, "choices": [choice], "usage": usage(job, len(ids))}

    def usage(job, count):
        read = job.input_ids.shape[1]
        return {"prompt_tokens": read, "completion_tokens": count, "total_tokens": read + count}

    async def stream(body, job, head, chat):
        def event(choices, **more):
            return "data: " + json.dumps({**head, "choices": choices, **more}, ensure_ascii=False) + "\n\n"

        def choice(text, reason, **more):
            said = {"delta": {"content": text}} if chat else {"text": text}
            return {"index": 0, **said, "finish_reason": reason, **more}

        want_ids = body.get("return_token_ids")
        count = 0
        ended = False
        try:
            if chat:
                first = {"prompt_token_ids": job.input_ids[0].tolist()} if want_ids else {}
                yield event([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}], **first)
            async for token, text, reason in server.pieces(job):
                count += 1
                yield event([choice(text, reason, **({"token_ids": [token]} if want_ids else {}))])
            if (body.get("stream_options") or {}).get("include_usage"):
                yield event([], usage=usage(job, count))
            yield "data: [DONE]\n\n"
            ended = True
        except Exception as error:
            ended = True
            yield "data: " + json.dumps({"error": {"message": repr(error), "type": "server_error"}}) + "\n\n"
        finally:
            if not ended:
                server.leave(job)

    return app


if __name__ == "__main__":
    args = arguments()
    uvicorn.run(build(args), host=args.host, port=args.port, log_level="info", access_log=False, timeout_graceful_shutdown=5)
