"""How often the recorder's model agrees with a real kube-scheduler in bursts, and how often it would with a guess.

.venv/bin/python -m benchmarks.recorder_agreement [--bursts 3] [--pods 300]

In a burst pods are created by six threads, most deleted within a second, every fourth pre-empts, nodes come, are
cordoned and go. A guess is a node drawn from those that fitted and weren't best: as often as earlier states explain a
guess, they may explain by chance a binding that they have nothing to do with.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import threading
from collections import Counter, deque
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.figures import machine, say, table
from roost.recorder.recording.assembler import Judgement
from roost.recorder.recording.metrics import Metrics
from roost.recorder.recording.model import Model, Unsettled
from roost.recorder.recording.recorder import Recording
from roost.recorder.recording.settings import parse_settings
from roost.recorder.report.gather import agreement
from roost.recorder.store.database import Store
from roost.recorder.store.records import Verdict, unpack_candidates
from roost_core.kube.client import connect
from roost_core.scheduler.plugins import NEWEST_MINOR
from roost_core.scheduler.profile import default_profile
from tests.e2e.recorder.test_recorder import HIGH, LOW, World
from tests.harness.controlplane import ControlPlane
from tests.harness.scheduler import start_scheduler
from tests.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roost.recorder.recording.reading import SeenPod

NODES: Final = 8
LISTED_SECONDS: Final = 60.0


class Doubter(Model):
    """A model that is asked of a guess, too, each time that it is asked of a binding."""

    def __init__(self) -> None:
        super().__init__({"default-scheduler": default_profile(NEWEST_MINOR)})
        self.words: Counter[str] = Counter()
        self.guesses: Counter[str] = Counter()
        self._chance = random.Random(11)  # noqa: S311 - draws a node, keeps no secret
        self._guessed: deque[Unsettled] = deque()

    def judge(self, decision_id: str, pod: SeenPod, node_name: str, at_us: int) -> Judgement | None:
        """As the model; the guess waits until all is told that the binding's own judgement may use."""
        asked = self.ask_of(decision_id, pod, node_name, at_us)
        judged = super().judge(decision_id, pod, node_name, at_us)
        packed = asked.first.candidates
        stood = unpack_candidates(packed.nodes) if packed is not None else []
        best = max((one["score_total"] or 0 for one in stood), default=0)
        others = [
            one["node_name"]
            for one in stood
            if one["node_name"] != node_name and not one["refused"] and (one["score_total"] or 0) < best
        ]
        if others:
            first = Judgement(Verdict.DIFFERS)
            self._guessed.append(replace(asked, node_name=self._chance.choice(others), first=first))
        if judged is not None:
            self.words[judged.model] += 1
        return judged

    def settle(self, now_us: int | None) -> Iterator[tuple[str, Judgement]]:
        """As the model."""
        for decision_id, judgement in super().settle(now_us):
            self.words[judgement.model] += 1
            yield decision_id, judgement
        while self._guessed and self.is_due(self._guessed[0], now_us):
            self.guesses[self.judge_again(self._guessed.popleft()).model] += 1


def burst(cluster: ControlPlane, pods: int) -> Doubter:
    """One burst, recorded."""
    model = Doubter()
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(str(Path(folder) / "roost.db"))
        store.migrate()
        settings = parse_settings(
            {"version": 1, "release": "hub", "namespace": "hub", "podClasses": {}, "retentionDays": 0}
        )
        recording = Recording(connect(cluster.kubeconfig), settings, store, Metrics("benchmark"), model=model)
        stop = threading.Event()
        thread = threading.Thread(target=recording.run, args=(stop,))
        with World(cluster, "", Path(folder)) as world:
            world.add_nodes(NODES)
            thread.start()
            wait_until(lambda: recording.verdict().passed, LISTED_SECONDS, "the recorder to have listed")
            world.churn(pods)
            wait_until(lambda: not world.is_leaving(), LISTED_SECONDS, "deletions to end")
        stop.set()
        thread.join()
        store.close()
    return model


def main(argv: Sequence[str] | None = None) -> None:
    """Print the rates as Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bursts", type=int, default=3)
    parser.add_argument("--pods", type=int, default=300)
    arguments = parser.parse_args(argv)
    print(f"{machine()}; bursts of {arguments.pods} pods on {NODES} nodes and more\n")
    rows = []
    with ControlPlane() as cluster:
        for name, value in ((LOW, 0), (HIGH, 1000)):
            kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
            cluster.api.create({**kind, "value": value})
        with start_scheduler(cluster) as scheduler:
            scheduler.wait_serving()
            for _ in range(arguments.bursts):
                model = burst(cluster, arguments.pods)
                guessed = model.guesses.total()
                explained = guessed - model.guesses[Verdict.DIFFERS]
                rows.append(
                    [
                        f"{model.words.total()}",
                        *(f"{model.words[word]}" for word in Verdict),
                        f"{agreement(model.words) or 0:.1%}",
                        f"{explained / guessed if guessed else 0:.0%} of {guessed}",
                    ]
                )
                say("  ".join(rows[-1]))
    head = ["bindings", *(str(word) for word in Verdict), "agreement", "guesses explained"]
    print(table(head, rows))


if __name__ == "__main__":
    main()
