"""Judge drawn cases in the scheduler's model: `python -m tests.judge --seed 7 --verbose`, `--seeds 0-1999`."""

import argparse
import logging
import sys
import time
from pathlib import Path
from pprint import pprint

from tests.judge.cases import draw
from tests.judge.roost_here import on_hub
from tests.judge.verdicts import try_case


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.judge", description=__doc__)
    parser.add_argument("--seed", type=int, help="one case")
    parser.add_argument("--seeds", default="0-199", metavar="A-B", help="cases from A to B")
    parser.add_argument("--hub", type=Path, help="a hub's values: Roost gets what an import makes of them")
    parser.add_argument("--verbose", action="store_true", help="print the case and what happened on both sides")
    options = parser.parse_args()
    first, last = (options.seed, options.seed) if options.seed is not None else map(int, options.seeds.split("-"))
    logging.disable(logging.CRITICAL)
    began, worse = time.process_time(), 0
    for seed in range(first, last + 1):
        case = draw(seed) if options.hub is None else on_hub(draw(seed), options.hub.read_text(encoding="utf-8"))
        without, with_roost, victims = try_case(case)
        if options.verbose:
            pprint(case, width=140)
            for title, world in (("without Roost", without), ("with Roost", with_roost)):
                print(f"{title}:", *world.journal, sep="\n  ")
        for victim in victims:
            print(f"seed {seed}: {victim}")
        worse += any(not victim.is_drift for victim in victims)
    seconds = time.process_time() - began
    print(f"{worse} of {last - first + 1} cases are worse; {seconds:.0f} s of processor time")
    return min(worse, 1)


if __name__ == "__main__":
    sys.exit(main())
