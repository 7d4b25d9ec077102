"""The least that streams can cost: uvicorn and h11 alone send the same bytes to each, 50 times a
second. `barestream.py PORT`; what a listener hears has the form of ours, and begins at once."""

import asyncio
import json
import sys
from datetime import UTC, datetime
from typing import Any

import uvicorn

PACE = 50
queues: set[asyncio.Queue[bytes]] = set()


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    start = {"type": "http.response.start", "status": 200}
    await send({**start, "headers": [(b"content-type", b"text/event-stream")]})
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    await send(
        {"type": "http.response.body", "body": b"event: hello\ndata: {}\n\n", "more_body": True}
    )
    queues.add(queue)
    while True:
        piece = await queue.get()
        await send({"type": "http.response.body", "body": piece, "more_body": True})


async def produce() -> None:
    number = 0
    while True:
        number += 1
        at = datetime.now(UTC).isoformat()
        data = {"seq": number, "at": at, "kind": "submitted", "job": f"job-{number}", "data": {}}
        piece = f"id: a-{number}\nevent: submitted\ndata: {json.dumps(data)}\n\n".encode()
        for queue in queues:
            queue.put_nowait(piece)
        await asyncio.sleep(1 / PACE)


async def main(port: int) -> None:
    config = uvicorn.Config(
        application, port=port, http="h11", ws="none", lifespan="off", log_config=None
    )
    producer = asyncio.ensure_future(produce())
    await uvicorn.Server(config).serve()
    producer.cancel()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
