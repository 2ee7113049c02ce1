"""Programs for developing Roost; none of them is installed.

`demo.py` is `make demo`, with `demo_screen.py`, `stand_in_api.py` (a fake API server) and
`recorded_story.py` (a fake record).
`quick.py`, `check.sh` and `test.sh` are the loops of CONTRIBUTING.md. `write_*.py` write generated
files. `image.py` builds the image, `take_screenshots.py` the docs' pictures with `browser.py`;
`try_import.py` imports every values file of a folder.
"""
