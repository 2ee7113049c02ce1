"""Judge drawn cases in the scheduler's model: `python -m tests.judge --seed 7 --verbose`, `--seeds
0-1999`.
"""

import argparse
import logging
import sys
import time
from collections import Counter
from pathlib import Path
from pprint import pprint

from tests.judge.cases import draw, draw_two
from tests.judge.hubs import read_hub
from tests.judge.verdicts import try_case


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.judge", description=__doc__)
    parser.add_argument("--seed", type=int, help="one case")
    parser.add_argument("--seeds", default="0-199", metavar="A-B", help="cases from A to B")
    parser.add_argument(
        "--hub", type=Path, help="a hub's values: Roost gets what an import makes of them"
    )
    parser.add_argument(
        "--odd", action="store_true", help="under values that are neither defaults nor an import's"
    )
    parser.add_argument("--two", action="store_true", help="two releases on the same nodes")
    parser.add_argument(
        "--verbose", action="store_true", help="print the case and what happened on both sides"
    )
    options = parser.parse_args()
    first, last = (
        (options.seed, options.seed)
        if options.seed is not None
        else map(int, options.seeds.split("-"))
    )
    logging.disable(logging.CRITICAL)
    hub = read_hub(options.hub.read_text(encoding="utf-8")) if options.hub is not None else None
    began, worse, did = time.process_time(), 0, Counter[str]()
    for seed in range(first, last + 1):
        case = draw_two(seed) if options.two else draw(seed, hub, is_odd=options.odd)
        without, with_roost, victims = try_case(case)
        if options.verbose:
            pprint(case, width=140)
            for title, world in (("without Roost", without), ("with Roost", with_roost)):
                print(f"{title}:", *world.journal, sep="\n  ")
        for victim in victims:
            print(f"seed {seed}: {victim}")
        did += with_roost.did
        worse += any(victim.is_harm for victim in victims)
    seconds = time.process_time() - began
    print(f"{worse} of {last - first + 1} cases are worse; {seconds:.0f} s of processor time")
    print(
        f"users' pods: {did['placed']} placed, {did['gated']} with the gate's terms, {did['warm']}"
        " with a warm set"
    )
    return int(worse > 0 or not did["placed"])


if __name__ == "__main__":
    sys.exit(main())
