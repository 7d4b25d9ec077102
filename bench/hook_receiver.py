"""A receiver of webhooks that costs as little as possible: a process of its own.

It prints its port. A POST is counted and answered 204; a GET gets the count.
"""

import asyncio

count = 0


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    global count
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"GET"):
            text = str(count).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
        else:
            at = head.lower().index(b"content-length:") + len(b"content-length:")
            await reader.readexactly(int(head[at : head.index(b"\r\n", at)]))
            count += 1
            writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
