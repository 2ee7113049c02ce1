import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.faults import ValuesError
from generator.values.loader import MAX_CHARACTERS, load, plain_scalar
from generator.values.lookups import mapping
from generator.values.sources import MAX_FILE_BYTES
from tests.recorded_data import rows


def faults(data: bytes | str) -> list[str]:
    with pytest.raises(ValuesError) as caught:
        load(data.encode() if isinstance(data, str) else data, "prod.yaml")
    return [str(fault) for fault in caught.value.faults]


def test_a_key_given_twice_is_a_fault_that_names_both_lines() -> None:
    assert faults("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n") == [
        (
            "prod.yaml:4: b.c: found the key twice (first on line 3), expected each key once."
            " Remove one of them."
        ),
        (
            "prod.yaml:5: a: found the key twice (first on line 1), expected each key once. Remove"
            " one of them."
        ),
    ]


def test_keys_that_only_look_different_are_one_key() -> None:
    assert "twice" in faults("{1: a, '1': b}")[0]
    assert "twice" in faults("{yes: a, on: b}")[0]
    assert load(b"{1: a, true: b, 1.5: c, -0.0: d}", "f").values == {
        "1": "a",
        "true": "b",
        "1.5": "c",
        "-0": "d",
    }


@pytest.mark.parametrize(("text", "line", "said"), rows("values-files-refused"))
def test_text_that_is_no_values_file_is_a_fault_with_its_line(
    text: str, line: int, said: str
) -> None:
    found = faults(text)
    assert found[0].startswith(f"prod.yaml:{line}: ")
    assert said in found[0]


def test_bytes_that_are_no_text_are_a_fault_with_their_line() -> None:
    assert "prod.yaml:2: found byte 0xff" in faults(b"a: 1\nb: \xff\n")[0]
    assert "U+0000" in faults(b"a: 1\nb: \0\n")[0]
    assert "UTF-8" in faults("a: 1\n".encode("utf-16"))[0]
    assert len(faults('a: 1\na: 2\nb: !x y\nc: "\\x01"\n')) == 3


@pytest.mark.parametrize(
    "bomb",
    [
        b"a: " + b"[" * 3_900 + b"]" * 3_900,
        b"a: " + b"[" * 2_000_000,
        b"a: " + b"{a: " * 500_000,
        b"a:\n" + b"- " * 1_000_000,
        b"\n".join(
            [
                b"a0: &a0 x",
                *(
                    b"a%d: &a%d [%s]" % (i, i, b",".join([b"*a%d" % (i - 1)] * 10))
                    for i in range(1, 12)
                ),
            ]
        ),
        b"".join(b"%sa:\n" % (b" " * i) for i in range(1000)),
        b"a: " + b"x" * (MAX_FILE_BYTES + 1),
        b"a: 1" + b"0" * 100_000,
    ],
    ids=range(8),
)
def test_a_file_made_to_burn_memory_or_time_is_refused_soon(bomb: bytes) -> None:
    begin = time.process_time()
    if bomb.startswith(b"a: 10"):
        # go-yaml finds it out of range for a float, and keeps the text.
        assert isinstance(load(bomb, "f").values["a"], str)
    else:
        faults(bomb)
    assert time.process_time() - begin < 5


@pytest.mark.parametrize("form", ["b: [{}]", "b: {{x: [{}]}}"])
def test_a_long_text_named_very_often_is_refused_soon(form: str) -> None:
    text = f"a: &a {'x' * 1_000_000}\n" + form.format(", ".join(["*a"] * 200_000)) + "\n"
    begin = time.process_time()
    (fault,) = faults(text.encode())
    assert (
        fault
        == f"prod.yaml:1: found more than {MAX_CHARACTERS} characters once aliases are written out,"
        " expected fewer. Name long texts by fewer aliases."
    )
    assert time.process_time() - begin < 5


def test_long_keys_that_are_merged_very_often_are_refused_soon() -> None:
    merged = "".join(f"m{index}: {{<<: *a}}\n" for index in range(10_000))
    (fault,) = faults(f"a: &a\n  ? {'k' * 100_000}\n  : 1\n{merged}")
    assert "characters once aliases are written out" in fault


def test_a_key_is_found_on_its_line_through_anchors_and_odd_spellings() -> None:
    source = load(
        b"# top\nx: &x\n  p: 1\na:\n  <<: *x\n  yes: 1\n  list:\n    - {q: 1}\n    - r: 2\n", "f"
    ).source
    assert source.find(("a", "p"))[:2] == (2, 3)
    assert source.find(("a", "true"))[:2] == (2, 6)
    assert source.find(("a", "list", 1, "r")) == (4, 9, True)
    assert source.find(("a", "nope", "deeper"))[:2] == (1, 4)


@pytest.mark.parametrize("written", ["1e6", "1.50", "0x10", "9223372036854775807", "on", "'1e6'"])
def test_a_key_that_is_no_text_is_found_by_the_name_that_the_values_have(written: str) -> None:
    loaded = load(f"a:\n  before: 0\n  {written}: here\n".encode(), "f")
    names = list(mapping(loaded.values["a"]))
    assert loaded.source.find(("a", names[1]))[:2] == (2, 3), names


@given(st.binary(max_size=200))
def test_any_bytes_are_values_or_faults(data: bytes) -> None:
    try:
        values, said = load(data, "f").values, ["none"]
    except ValuesError as error:
        values, said = {}, [str(fault) for fault in error.faults]
    assert isinstance(values, dict)
    assert said
    assert all("\n" not in line for line in said)


@given(st.text(alphabet="yn0123456789.eE+-_xob:~ajTtrfNul<", max_size=12))
def test_any_plain_scalar_is_read_without_a_fault(text: str) -> None:
    assert isinstance(plain_scalar(text), str | int | float | bool | None)
