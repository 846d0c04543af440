"""CALLS chats by 16 threads with requests, every other one as a stream, which waits for as long as it takes: python3 with_requests.py CALLS"""

import time
from concurrent.futures import ThreadPoolExecutor

import requests
from burst import CALLS, HEADERS, URL, answered, asked, streamed, whole


def chat(i):
    began = time.monotonic()
    if i % 2:
        r = requests.post(URL, headers=HEADERS, json=asked(i))
        answered("requests", i, began, r.status_code, whole(r.json()) if r.ok else None)
        return
    body = asked(i, stream=True, stream_options={"include_usage": True})
    with requests.post(URL, headers=HEADERS, json=body, stream=True) as r:
        answered("requests", i, began, r.status_code, streamed(r.iter_lines(decode_unicode=True)) if r.ok else None)


with ThreadPoolExecutor(16) as threads:
    list(threads.map(chat, range(CALLS)))
