"""``python -m tests.attack --number 1000 --seed 20260101``: so many random settings; prints every
one that fails, and fails itself then.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import time

from . import FAMILIES, setting_of
from .check import failures


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--number", type=int, default=1000, help="settings (default: 1000)")
    parser.add_argument("--seed", type=int, default=None, help="default: today's date, as 20260131")
    parser.add_argument("--only", choices=sorted(FAMILIES), help="one family")
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first setting, to look at one again"
    )
    asked = parser.parse_args(arguments)
    seed = asked.seed if asked.seed is not None else int(datetime.date.today().strftime("%Y%m%d"))
    failed, start, told = 0, time.monotonic(), time.monotonic()
    for index in range(asked.first, asked.first + asked.number):
        setting = setting_of(seed, index, asked.only)
        wrong = failures(setting)
        if wrong:
            failed += 1
            print(
                f"--seed {seed} --first {index} --number 1"
                + (f" --only {asked.only}" if asked.only else "")
            )
            print("\n".join([f"  {setting}", *(f"    {line}" for line in wrong)]), flush=True)
        if time.monotonic() - told > 20.0:
            told = time.monotonic()
            done = index + 1 - asked.first
            print(
                f"{done} of {asked.number} settings, {failed} failed, {told - start:.0f} s",
                file=sys.stderr,
            )
    print(f"seed {seed}: {failed} of {asked.number} settings failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
