"""CALLS chats at once by aiohttp, which waits for five minutes if nothing else is said: python3 with_aiohttp.py CALLS"""

import asyncio
import time

import aiohttp
from burst import CALLS, HEADERS, URL, answered, asked, whole


async def chat(session, i):
    began = time.monotonic()
    async with session.post(URL, json=asked(i)) as r:
        answered("aiohttp", i, began, r.status, whole(await r.json()) if r.status == 200 else None)


async def main():
    async with aiohttp.ClientSession(headers=HEADERS) as session:
        await asyncio.gather(*[chat(session, i) for i in range(CALLS)])


asyncio.run(main())
