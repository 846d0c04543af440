"""CALLS chats at once by httpx: python3 with_httpx.py CALLS. An answer may take long, and so httpx is to wait for longer than its 5 s."""

import asyncio
import time

import httpx
from burst import CALLS, HEADERS, URL, answered, asked, whole


async def chat(client, i):
    began = time.monotonic()
    r = await client.post(URL, json=asked(i))
    answered("httpx", i, began, r.status_code, whole(r.json()) if r.status_code == 200 else None)


async def main():
    async with httpx.AsyncClient(headers=HEADERS, timeout=httpx.Timeout(600)) as client:
        await asyncio.gather(*[chat(client, i) for i in range(CALLS)])


asyncio.run(main())
