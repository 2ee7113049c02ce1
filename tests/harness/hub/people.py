"""People at a real hub: they log in by its form, choose a profile, follow the spawn page and open
their server.
"""

import asyncio
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import aiohttp

from tests.harness.hub.hub import PASSWORD

# From the page's word "ready" to the first answer, which a restart of the hub may delay; and of
# everything.
ANSWER_SECONDS = 90.0
PATIENCE_SECONDS = 120.0
# Whoever sees nothing new on the page for so long loads it again.
STILL_SECONDS = 15.0


@dataclass(slots=True)
class Visit:
    """One person's start. Times are Unix time; 0.0: it never came to that."""

    user: str
    profile: str
    clicked_at: float = 0.0
    # The hub has taken the form, and shows the spawn page: each time that it was loaded.
    pages: list[float] = field(default_factory=list)
    # The hub says that the server is ready.
    ready_at: float = 0.0
    # The server has answered 200 through the proxy.
    answered_at: float = 0.0
    # The hub's own clean error; "" when there was none.
    failure: str = ""
    # What went wrong in no clean way: a 5xx, a broken page.
    fault: str = ""
    # Pages that broke off, as people see them, and load them again.
    broken: list[str] = field(default_factory=list)
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
        raise ValueError(f"no login: {answer.status} at {answer.url.path}")


def _words(page: str) -> str:
    return re.sub(r"(<[^>]+>|\s)+", " ", page).strip()[-300:]


async def _choose(session: aiohttp.ClientSession, url: str, visit: Visit, server: str) -> str:
    """Send the form of profiles; the address of the spawn page's event stream, or "" if the server
    runs already.
    """
    answer = await session.get(f"{url}/hub/spawn/{visit.user}/{server}".rstrip("/"))
    page = await answer.text()
    target = re.search(r'<form[^>]*\saction="([^"]*/hub/spawn[^"]*)"', page)
    if target is not None:
        visit.clicked_at = visit.clicked_at or time.time()
        with aiohttp.MultipartWriter("form-data") as body:
            body.append(visit.profile).set_content_disposition("form-data", name="profile")
        answer = await session.post(url + target[1].replace("&amp;", "&"), data=body)
        page = await answer.text()
    if (
        f"/user/{visit.user}/" in answer.url.path
        and answer.status == 200
        and "/hub/" not in answer.url.path
    ):
        return ""
    stream = re.search(r'EventSource\("([^"]+)"', page)
    if stream is None:
        raise ValueError(f"no spawn page: {answer.status} at {answer.url.path}: {_words(page)}")
    visit.pages.append(time.time())
    return url + stream[1].encode().decode("unicode_escape").replace("&amp;", "&")


async def _follow(session: aiohttp.ClientSession, stream: str, visit: Visit) -> str:
    """Read the event stream to its end; the server's path, or ""."""
    patience = aiohttp.ClientTimeout(total=None, sock_read=STILL_SECONDS)
    async with session.get(
        stream, headers={"Accept": "text/event-stream"}, timeout=patience
    ) as events:
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


async def _open(session: aiohttp.ClientSession, address: str, visit: Visit) -> bool:
    """Whether the server answers; False: the hub offers to start it, as when it has lost it by a
    restart.
    """
    seen = ""
    deadline = time.time() + ANSWER_SECONDS
    while time.time() < deadline:
        answer = await session.get(address)
        if answer.status == 200 and "/user/" in answer.url.path:
            visit.answered_at = time.time()
            return True
        if answer.status == 424:
            visit.broken.append(f"not running, at {answer.url.path}")
            return False
        seen = f"{answer.status} at {answer.url.path}"
        await asyncio.sleep(0.1)
    visit.fault = f"ready, but no answer: {seen}"
    return True


async def _reach(
    session: aiohttp.ClientSession, url: str, visit: Visit, server: str, tries: int
) -> None:
    """Ask for a server until the hub has answered so or so.

    A page that breaks off, as when the hub restarts, is loaded again; after the hub's own error
    people try again, too.
    """
    deadline = time.time() + PATIENCE_SECONDS
    is_in = False
    while time.time() < deadline:
        path = visit.failure = ""
        try:
            if not is_in:
                await _log_in(session, url, visit.user)
                is_in = True
            stream = await _choose(session, url, visit, server)
            path = (
                await _follow(session, stream, visit) if stream else f"/user/{visit.user}/{server}"
            )
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            visit.broken.append(f"{type(error).__name__}: {error}")
            if not is_in:
                # A login that a restart broke off leaves cookies that the hub refuses (403): in a
                # fresh window.
                session.cookie_jar.clear()
        if path and await _open(session, url + path, visit):
            return
        if visit.failure:
            tries -= 1
            if not tries:
                return
        await asyncio.sleep(1)
    visit.fault = f"no server after {visit.broken[-3:]}; last lines: {visit.shown[-3:]}"


async def log_in(session: aiohttp.ClientSession, url: str, user: str) -> None:
    """Log in by the hub's form. Raises ValueError, and what aiohttp raises."""
    await _log_in(session, url, user)


async def reach(session: aiohttp.ClientSession, url: str, visit: Visit) -> None:
    """From a logged-in user's click on "start" until their server has answered."""
    stream = await _choose(session, url, visit, "")
    path = await _follow(session, stream, visit) if stream else f"/user/{visit.user}/"
    if path:
        await _open(session, url + path, visit)


async def _visit(url: str, visit: Visit, server: str, tries: int, after_seconds: float) -> Visit:
    await asyncio.sleep(after_seconds)
    jar = aiohttp.CookieJar(unsafe=True)  # loopback addresses are no names
    timeout = aiohttp.ClientTimeout(total=PATIENCE_SECONDS)
    async with aiohttp.ClientSession(cookie_jar=jar, timeout=timeout) as session:
        try:
            await _reach(session, url, visit, server, tries)
        except (aiohttp.ClientError, TimeoutError) as error:
            visit.fault = f"{type(error).__name__}: {error}"
    return visit


def start(
    url: str,
    users: Sequence[str],
    profiles: Sequence[str],
    *,
    server: str = "",
    tries: int = 1,
    gap: float = 0.0,
) -> list[Visit]:
    """Start a server for each user, `gap` seconds apart, with the profiles in turn; returns when
    all have ended.

    server: a named one. tries: how often a user asks when the hub says that a start failed.
    """

    async def all_of_them() -> list[Visit]:
        visits = [
            Visit(user, profiles[number % len(profiles)]) for number, user in enumerate(users)
        ]
        going = [
            _visit(url, visit, server, tries, number * gap) for number, visit in enumerate(visits)
        ]
        return list(await asyncio.gather(*going))

    return asyncio.run(all_of_them())
