"""People at a real hub: they log in by its form, choose a profile, follow the spawn page and open their server."""

import asyncio
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import aiohttp

from tests.harness.hub.hub import PASSWORD

# From the page's word "ready" to the first answer; and of everything.
ANSWER_SECONDS = 30.0
PATIENCE_SECONDS = 120.0


@dataclass(slots=True)
class Visit:
    """One person's start. Times are Unix time; 0.0: it never came to that."""

    user: str
    profile: str
    clicked_at: float = 0.0
    # The hub says that the server is ready.
    ready_at: float = 0.0
    # The server has answered 200 through the proxy.
    answered_at: float = 0.0
    # The hub's own clean error; "" when there was none.
    failure: str = ""
    # What went wrong in no clean way: a 5xx, a broken page.
    fault: str = ""
    # The page's lines, with their times.
    shown: list[tuple[float, str]] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """From the click to the first answer."""
        return self.answered_at - self.clicked_at


async def _log_in(session: aiohttp.ClientSession, url: str, user: str) -> None:
    page = await (await session.get(f"{url}/hub/login")).text()
    token = re.search(r'name="_xsrf" value="([^"]*)"', page)
    form = {"username": user, "password": PASSWORD, "_xsrf": token[1] if token else ""}
    answer = await session.post(f"{url}/hub/login?next=%2Fhub%2Fhome", data=form)
    if answer.status != 200 or not str(answer.url).endswith("/hub/home"):
        raise RuntimeError(f"no login: {answer.status} at {answer.url}")


def _words(page: str) -> str:
    return re.sub(r"(<[^>]+>|\s)+", " ", page).strip()[-300:]


async def _choose(session: aiohttp.ClientSession, url: str, visit: Visit, server: str) -> str:
    """Send the form of profiles; the address of the spawn page's event stream."""
    page = await (await session.get(f"{url}/hub/spawn/{visit.user}/{server}".rstrip("/"))).text()
    target = re.search(r'<form[^>]*\saction="([^"]*/hub/spawn[^"]*)"', page)
    if target is None:
        raise RuntimeError(f"no form of profiles: {_words(page)}")
    visit.clicked_at = time.time()
    with aiohttp.MultipartWriter("form-data") as body:
        part = body.append(visit.profile)
        part.set_content_disposition("form-data", name="profile")
    answer = await session.post(url + target[1].replace("&amp;", "&"), data=body)
    page = await answer.text()
    stream = re.search(r'EventSource\("([^"]+)"', page)
    if stream is None:
        raise RuntimeError(f"no spawn page: {answer.status} at {answer.url}: {_words(page)}")
    return url + stream[1].encode().decode("unicode_escape").replace("&amp;", "&")


async def _follow(session: aiohttp.ClientSession, stream: str, visit: Visit) -> str:
    """Read the event stream to its end; the server's path, or ""."""
    async with session.get(stream, headers={"Accept": "text/event-stream"}) as events:
        async for raw in events.content:
            if not raw.startswith(b"data:"):
                continue
            event = json.loads(raw[5:])
            message = str(event.get("message") or "")
            visit.shown.append((time.time(), message))
            if event.get("failed"):
                visit.failure = message or "failed"
                return ""
            if event.get("ready"):
                visit.ready_at = time.time()
                return str(event["url"])
    return ""


async def _follow_to_the_end(session: aiohttp.ClientSession, stream: str, visit: Visit) -> str:
    """`_follow` as a browser does, which connects again when the stream breaks."""
    while time.time() - visit.clicked_at < PATIENCE_SECONDS:
        try:
            path = await _follow(session, stream, visit)
        except (aiohttp.ClientError, ValueError):
            path = ""
        if path or visit.failure:
            return path
        await asyncio.sleep(0.5)
    raise RuntimeError(f"the spawn page ended in nothing; its last lines: {visit.shown[-3:]}")


async def _open(session: aiohttp.ClientSession, address: str, visit: Visit) -> None:
    answer = None
    while time.time() - visit.ready_at < ANSWER_SECONDS:
        answer = await session.get(address)
        if answer.status == 200 and "/user/" in str(answer.url):
            visit.answered_at = time.time()
            return
        await asyncio.sleep(0.1)
    raise RuntimeError(f"ready, but no answer: {answer and (answer.status, str(answer.url))}")


async def _visit(url: str, user: str, profile: str, server: str, after_seconds: float) -> Visit:
    visit = Visit(user, profile)
    await asyncio.sleep(after_seconds)
    jar = aiohttp.CookieJar(unsafe=True)  # loopback addresses are no names
    timeout = aiohttp.ClientTimeout(total=PATIENCE_SECONDS)
    async with aiohttp.ClientSession(cookie_jar=jar, timeout=timeout) as session:
        try:
            await _log_in(session, url, user)
            stream = await _choose(session, url, visit, server)
            path = await _follow_to_the_end(session, stream, visit)
            if path:
                await _open(session, url + path, visit)
        except (aiohttp.ClientError, TimeoutError, RuntimeError) as error:
            visit.fault = f"{type(error).__name__}: {error}"
    return visit


def start(url: str, users: Sequence[str], profiles: Sequence[str], *, server: str = "", gap: float = 0.0) -> list[Visit]:
    """Start a server for each user, `gap` seconds apart, with the profiles in turn; returns when all have ended."""

    async def all_of_them() -> list[Visit]:
        visits = [
            _visit(url, user, profiles[number % len(profiles)], server, number * gap)
            for number, user in enumerate(users)
        ]
        return list(await asyncio.gather(*visits))

    return asyncio.run(all_of_them())
