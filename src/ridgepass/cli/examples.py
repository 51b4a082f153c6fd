"""Examples for the help texts, to be pasted as they are; the tests run each of them."""

_ROWS = r"printf 'size,city,price\n1,Rome,3\n2,Bonn,5\n4,Rome,9\n'"


def _example(*lines: str) -> str:
    """Return shell lines under a heading, as Markdown."""
    return "\n".join(["An example to paste:", "", "```sh", *lines, "```"])


OVERVIEW = _example(
    f"{_ROWS} > flats.csv",
    "ridgepass fit flats.csv --target price --one-hot city -o flats.ridge",
    "ridgepass predict flats.ridge flats.csv --bounds",
)

FIT = _example(
    f"{_ROWS} > flats.csv",
    "ridgepass fit flats.csv -t price --one-hot city -o flats.ridge",
    "ridgepass fit flats.csv -t price --exclude city --alpha auto -o auto.ridge",
)

PREDICT = _example(
    f"{_ROWS} > flats.csv",
    "ridgepass fit flats.csv --target price --one-hot city -o flats.ridge",
    "grep -v Bonn flats.csv | ridgepass predict flats.ridge - --keep size",
)

MERGE = _example(
    "printf 'x,y\\n1,3\\n2,5\\n' > here.csv",
    "printf 'x,y\\n3,8\\n4,9\\n' > there.csv",
    "ridgepass fit here.csv --target y -o here.ridge",
    "ridgepass fit there.csv --target y -o there.ridge",
    "ridgepass merge here.ridge there.ridge -o both.ridge",
)

INSPECT = _example(
    "printf 'x,y\\n1,3\\n2,5\\n3,8\\n' > rows.csv",
    "ridgepass fit rows.csv --target y -o rows.ridge",
    "ridgepass inspect rows.ridge --json",
)

DEMO = _example("ridgepass demo --rows 2000 --features 500 --sketch-size 32")
