"""The source page of Nsight Compute: what is read is what an independent reading of it adds up."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from flame.core.errors import InputError
from flame.core.model.stalls import stall_of
from flame.core.readers.ncu.result import NcuResult, result_warnings
from flame.core.readers.ncu.source_csv import is_source_csv, read_source_csv
from tests.conftest import TRACES
from tests.support.writers.ncufile import BASE, STEP, TOTAL, Line, Row, cuda_page, sass_page

REAL = TRACES / "ncu" / "stalls_julia.sass.csv"
LOAD, STORE, EXIT = "LDG.E R2, [R4.64]", "STG.E [R2.64], R5", "EXIT"
WAIT, LONG = "stall_wait", "stall_long_sb"

PAGE = sass_page("copy(float *)", [Row(LOAD, {LONG: 5, WAIT: 1}), Row(STORE, {WAIT: 2}), Row(EXIT)])


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8", newline="")
    return path


def read(tmp_path: Path, text: str) -> list[NcuResult]:
    return read_source_csv(write(tmp_path / "source.csv", text))


def refused(tmp_path: Path, text: str | bytes) -> str:
    """What is said of a file, without its name; it is one line."""
    path = tmp_path / "source.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as caught:
        read_source_csv(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert said.isprintable()
    return said.removeprefix(f"{path}: ")


def by_place(result: NcuResult) -> dict[int, dict[str, int]]:
    """Samples of a result by offset and key of the reason."""
    found: dict[int, dict[str, int]] = {}
    samples = result.samples
    for place, reason, count in zip(samples.place, samples.reason, samples.samples, strict=True):
        offset = int(samples.code.offset[place])
        found.setdefault(offset, {})[samples.reasons[reason]] = int(count)
    return found


def added_up(path: Path) -> list[tuple[str, dict[int, dict[str, int]]]]:
    """The same of all results in a page of instructions, by the csv module alone."""
    found: list[tuple[str, dict[int, dict[str, int]]]] = []
    header: list[str] = []
    first = 0
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.reader(file):
            if row[0] == "Kernel Name":
                found.append((row[1], {}))
                first = 0
            elif row[0] == "Address":
                header = row
            else:
                cells = dict(zip(header, row, strict=True))
                first = first or int(row[0], 16)
                rest = int(next(cells[one] for one in header if one.startswith("Warp Stall")))
                samples: Counter[str] = Counter()
                for name, cell in cells.items():
                    if name.startswith("stall_") and not name.endswith("(Not Issued)"):
                        samples[stall_of(name).key] += int(cell)
                        rest -= int(cell)
                samples["unknown"] = rest
                kept = {key: count for key, count in samples.items() if count}
                if kept:
                    found[-1][1][int(row[0], 16) - first] = kept
    return found


@pytest.mark.skipif(not REAL.exists(), reason=f"no real page {REAL}")
def test_the_real_page_adds_up() -> None:
    results = read_source_csv(REAL)
    assert [(one.name, by_place(one)) for one in results] == added_up(REAL)
    assert [one.samples.total for one in results] == [48443, 956805]
    assert [len(one.samples.code) for one in results] == [32, 1624]
    assert list(result_warnings(results)) == [
        "PC samples that are under no stall reason: 1,692 of 1,005,248"
    ]


@pytest.mark.skipif(not REAL.exists(), reason=f"no real page {REAL}")
def test_jumps_in_the_real_page_are_counted_from_the_kernel() -> None:
    code = read_source_csv(REAL)[0].samples.code
    assert code.text[8] == "@P0 EXIT"
    assert code.instruction(17) == "+0x0110 BRA 0x110"


counts = st.integers(0, 1 << 40)
reasons = st.sampled_from([WAIT, LONG, "stall_barrier", "stall_selected", "stall_of_the_future"])
texts = st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters='",;'))
rows = st.builds(
    lambda sass, samples, more: Row(sass, samples, sum(samples.values()) + more),
    texts,
    st.dictionaries(reasons, counts, max_size=4),
    counts,
)
names = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters='"'), min_size=1)


@given(st.lists(st.tuples(names, st.lists(rows, min_size=1)), min_size=1, max_size=3))
def test_generated_pages_add_up(
    tmp_path_factory: pytest.TempPathFactory, kernels: list[tuple[str, list[Row]]]
) -> None:
    assume(any(row.total for _, code in kernels for row in code))
    text = "".join(sass_page(name, code) for name, code in kernels)
    path = write(tmp_path_factory.mktemp("page") / "source.csv", text)
    results = read_source_csv(path)
    assert [(one.name, by_place(one)) for one in results] == added_up(path)
    for (_, code), one in zip(kernels, results, strict=True):
        assert list(one.samples.code.text) == [" ".join(row.sass.split()) for row in code]


def test_a_page_of_instructions(tmp_path: Path) -> None:
    (result,) = read(tmp_path, PAGE)
    assert result.name == "copy(float *)"
    assert result.address == BASE
    assert result.samples.code.offset.tolist() == [0, 16, 32]
    assert result.samples.code.text == (LOAD, STORE, EXIT)
    assert result.samples.code.line.tolist() == [0, 0, 0]
    assert by_place(result) == {0: {"long_scoreboard": 5, "wait": 1}, 16: {"wait": 2}}


def as_written_by_others(text: str) -> str:
    """The same with quotes only where there must be some."""
    file = io.StringIO()
    csv.writer(file).writerows(csv.reader(text.splitlines()))
    return file.getvalue()


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + PAGE,
        PAGE.replace("\n", "\r\n"),
        PAGE.removesuffix("\n"),
        f"==PROF== Connected to process 5 (/bin/python, 3)\nloss: 1, 2, 3\n{PAGE}",
        PAGE.replace('"0x', 'half, done 7\n==PROF== "copy": 50%\n"0x', 1),
        as_written_by_others(PAGE),
        PAGE.replace('"5"', '"5.00"').replace('"2"', '" 2 "'),
        PAGE.replace('"0"', '"-"'),
        PAGE.replace("0x7f", "0X7F"),
        PAGE.replace("0x7f", "00007f"),
        PAGE.replace(TOTAL, "Warp Stall Sampling (All Cycles)"),
        PAGE.replace(TOTAL, "Sampling Data (All)"),
        PAGE.replace(TOTAL, "# Samples"),
        PAGE.replace(TOTAL, "smsp__pcsamp_sample_count"),
        PAGE.replace(TOTAL, "Something Else"),
        PAGE.replace("stall_long_sb", "smsp__pcsamp_warps_issue_stalled_long_scoreboard"),
        PAGE.replace(" (Not Issued)", "_not_issued"),
        PAGE.replace('"\n', '",\n'),
    ],
)
def test_what_versions_and_shells_make_of_it(text: str, tmp_path: Path) -> None:
    (result,) = read(tmp_path, text)
    assert by_place(result) == {0: {"long_scoreboard": 5, "wait": 1}, 16: {"wait": 2}}
    assert list(result_warnings([result])) == []


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_powershell_writes_utf_16(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "source.csv"
    mark = codecs.BOM_UTF16_LE if encoding.endswith("le") else codecs.BOM_UTF16_BE
    path.write_bytes(mark + PAGE.encode(encoding))
    assert is_source_csv(path.read_bytes())
    assert read_source_csv(path)[0].samples.total == 8


def test_a_gzipped_page(tmp_path: Path) -> None:
    path = tmp_path / "source.csv.gz"
    path.write_bytes(gzip.compress(PAGE.encode()))
    assert read_source_csv(path)[0].samples.total == 8


@pytest.mark.parametrize(
    "cell", ["1,234,567", "1.234.567", "1 234 567", "1'234'567", "1\u202f234\u202f567"]
)
def test_separators_of_thousands(cell: str, tmp_path: Path) -> None:
    text = sass_page("k", [Row(LOAD, {WAIT: cell}, cell)])
    assert read(tmp_path, text)[0].samples.total == 1234567


@pytest.mark.parametrize(
    "cell",
    ["1.5", "1.234", "12.000", "-3", "nan", "inf", "1e6", "1,23", "12 K", "1,234.567", "9" * 30],
)
def test_what_is_no_number_of_samples_is_refused(cell: str, tmp_path: Path) -> None:
    text = sass_page("k", [Row(EXIT), Row(LOAD, {WAIT: cell}, 7)])
    said = refused(tmp_path, text)
    assert said.startswith(f"line 4: '{cell}' is no number of samples; export the page again")


def test_results_of_one_kernel_stay_apart(tmp_path: Path) -> None:
    again = sass_page("copy(float *)", [Row(LOAD, {WAIT: 4})], BASE + 512)
    results = read(tmp_path, PAGE + again)
    assert [one.samples.total for one in results] == [8, 4]
    assert [one.address for one in results] == [BASE, BASE + 512]


def test_jumps_are_the_same_wherever_the_kernel_lies(tmp_path: Path) -> None:
    texts = []
    for base in (BASE, BASE + 0x1000):
        inside, outside = hex(base + STEP), hex(BASE + 0x100000)
        rows = [Row(f"BRA {inside}", {WAIT: 1}), Row(f"CALL.ABS {outside}"), Row("MOV R1, 0x10")]
        texts.append(sass_page("k", rows, base))
    one, other = read(tmp_path, "".join(texts))
    assert one.samples.code.text == other.samples.code.text
    assert one.samples.code.text == ("BRA 0x10", f"CALL.ABS {hex(BASE + 0x100000)}", "MOV R1, 0x10")


def test_samples_under_no_reason_are_kept(tmp_path: Path) -> None:
    (result,) = read(tmp_path, sass_page("k", [Row(LOAD, {WAIT: 3}, 10), Row(EXIT, {WAIT: 1})]))
    assert by_place(result) == {0: {"wait": 3, "unknown": 7}, 16: {"wait": 1}}
    assert list(result_warnings([result])) == ["PC samples that are under no stall reason: 7 of 11"]


def test_a_page_without_reasons_has_samples_under_none(tmp_path: Path) -> None:
    (result,) = read(tmp_path, sass_page("k", [Row(LOAD, total=10), Row(EXIT, total=0)]))
    assert by_place(result) == {0: {"unknown": 10}}


def test_more_by_reason_than_in_all_is_told(tmp_path: Path) -> None:
    (result,) = read(tmp_path, sass_page("k", [Row(LOAD, {WAIT: 10}, 4)]))
    assert result.samples.total == 10
    (said,) = result_warnings([result])
    assert said == "instructions with more samples by reason than in all: 1; reasons count"


def test_a_kernel_whose_samples_were_not_collected_is_told(tmp_path: Path) -> None:
    bare = '"Kernel Name","bare<1>(int)",\n"Address","Source","Instructions Executed"\n'
    bare += '"0x10","EXIT","3"\n'
    results = read(tmp_path, bare + PAGE + '"Kernel Name","named_only",\n')
    assert [(one.name, one.collected, one.samples.total) for one in results] == [
        ("bare<1>(int)", False, 0),
        ("copy(float *)", True, 8),
        ("named_only", False, 0),
    ]
    (said,) = result_warnings(results)
    assert said.startswith("kernels without PC samples: bare, named_only; profile again with ncu ")


LINES = [
    Line(3, "float v = x[i];", [(0, Row(LOAD, {LONG: 5, WAIT: 1}))]),
    Line(4, 'printf("%d, %d", 1, 2);', [(2, Row(EXIT)), (1, Row(STORE, {WAIT: 2}))]),
]


def test_a_page_of_source_lines_and_instructions(tmp_path: Path) -> None:
    (result,) = read(tmp_path, cuda_page("copy", "/home/me/copy.cu", LINES, [LONG, WAIT]))
    code = result.samples.code
    assert result.name == "copy"
    assert code.text == (LOAD, STORE, EXIT)
    assert code.line.tolist() == [3, 4, 4]
    assert code.file.tolist() == [0, 0, 0]
    assert code.files == ("/home/me/copy.cu",)
    assert code.source == {(0, 3): LINES[0].text, (0, 4): LINES[1].text}
    assert by_place(result) == {0: {"long_scoreboard": 5, "wait": 1}, 16: {"wait": 2}}


def test_an_instruction_of_several_lines_and_files_counts_once(tmp_path: Path) -> None:
    inlined = [Line(90, "return a;", [(0, Row(LOAD, {LONG: 5, WAIT: 1}))])]
    text = cuda_page("copy", "copy.cu", [*LINES, LINES[0]], [LONG, WAIT])
    (result,) = read(tmp_path, text + cuda_page("copy", "help.h", inlined, [LONG, WAIT]))
    assert result.samples.total == 8
    assert result.unlike == 0
    assert result.samples.code.line.tolist() == [3, 4, 4]


def test_an_instruction_that_is_listed_with_two_counts_is_told(tmp_path: Path) -> None:
    other = [Line(9, "again", [(0, Row(LOAD, {LONG: 6, WAIT: 1}))])]
    (result,) = read(tmp_path, cuda_page("copy", "copy.cu", [*LINES, *other], [LONG, WAIT]))
    assert result.samples.total == 8
    (said,) = result_warnings([result])
    assert said.startswith("instructions listed several times, unlike each other: 1;")


@pytest.mark.parametrize("named", ["", '"Kernel Name","copy(float *)",\n'])
def test_files_of_several_results_are_told_apart(named: str, tmp_path: Path) -> None:
    other = [Line(90, "return a;", [(3, Row("NOP", {LONG: 1}))])]
    one = named + cuda_page("copy", "copy.cu", LINES, [LONG, WAIT])
    one += cuda_page("copy", "help.h", other, [LONG])
    results = read(tmp_path, one + one)
    assert [one.samples.total for one in results] == [9, 9]
    assert {one.name for one in results} == {"copy(float *)" if named else "copy"}
    assert [one.samples.code.files for one in results] == [("copy.cu", "help.h")] * 2


def test_source_text_with_quotes_that_are_not_doubled(tmp_path: Path) -> None:
    text = cuda_page("copy", "copy.cu", LINES, [LONG, WAIT])
    assert '""%d, %d""' in text
    assert read(tmp_path, text.replace('""%d, %d""', '"%d, %d"'))[0].samples.total == 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not the source page of Nsight Compute"),
        ("a,b\n1,2\n", "not the source page of Nsight Compute"),
        ("\n" * 5000, "not the source page of Nsight Compute"),
        ("\x1b]0;pwned\x07,x\n\x00", "not the source page of Nsight Compute"),
        (bytes(range(256)) * 300, "not the source page of Nsight Compute"),
        ('"ID","Process ID","Process Name","Metric Name","Metric Value"\n', "the details page"),
        ('"ID","Process ID","Process Name","launch__grid_size"\n', "the raw page"),
        ('"Kernel Name","k",\n"#","Source","# Samples"\n"1","mov.u32 %r1;","3"\n', "no SASS"),
        ('"Kernel Name","k",\n"Address","Source"\n"0x10","EXIT"\n', "no PC samples were collected"),
        ('"Kernel Name","k",\n', "no SASS"),
        (sass_page("k", [Row(EXIT, {WAIT: 0})]), "no PC samples in it"),
        (PAGE + '"0x10","LDG', "cut off"),
        (PAGE + '"0x10","LDG","3",', "cut off"),
        (PAGE[: PAGE.rindex('"7"')], "cut off"),
        (PAGE.replace(hex(BASE), "-"), "line 3: samples without an address"),
        (sass_page("k", [Row(EXIT, {WAIT: 10**18 - 1})]), "more than there can be"),
        (f'"Kernel Name","k",\n"Address","Source"{",x" * 2_000}\n', "2,002 columns are more than"),
    ],
)
def test_what_is_refused(text: str | bytes, said: str, tmp_path: Path) -> None:
    assert said in refused(tmp_path, text)


def test_a_gzip_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    assert "damaged" in refused(tmp_path, gzip.compress(PAGE.encode() * 99)[:-12])


def test_names_of_any_length_and_kind(tmp_path: Path) -> None:
    names = ["x" * 100_000, "\x1b[31mred\x07", "a<b, c>(d *)", "层", ""]
    text = "".join(sass_page(name, [Row(EXIT, {WAIT: 1})]) for name in names)
    assert [one.name for one in read(tmp_path, text)] == names


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (PAGE, True),
        (cuda_page("copy", "copy.cu", LINES, [LONG]), True),
        ('"ID","Process ID","Process Name","Metric Name"\n', True),
        ("main;work 12\n", False),
        ('{"Address": "Source"}', False),
        ("Name,Address,Time\n", False),
    ],
)
def test_pages_are_known_by_sight(head: str, known: bool) -> None:
    assert is_source_csv(head.encode()) is known


def test_progress_is_told_and_never_beyond_the_end(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    path = write(tmp_path / "source.csv", PAGE * 3)
    read_source_csv(path, lambda _, done, size: told.append((done, size)))
    assert len(told) >= 3
    assert all(done <= size for done, size in told)
