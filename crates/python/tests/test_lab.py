"""Studies, their results, and single runs."""

import ctypes
import dataclasses
import datetime
import math
import pathlib
import random
import signal
import subprocess
import sys
import textwrap
import time

import altair
import polars
import pytest

import lab_kit
import rexmit
from rexmit import lab
from threads_kit import turns_during

ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def results(store):
    return lab_kit.study(rows=True).run(store=store)


def test_every_study_of_the_package_is_there_and_one_of_a_file_is_the_same():
    assert {path.stem for path in (ROOT / "studies").glob("*.toml")} == set(lab.STUDIES)
    bundled = lab.Study.load("limit")
    read = lab.Study.load(ROOT / "studies/limit.toml")
    assert (read.name, read.text, len(read)) == ("limit", bundled.text, len(bundled))
    assert lab.Study.from_text(bundled.text, "limit").axes == bundled.axes
    assert bundled.estimated_seconds > 0
    fig8a = lab.Study.load("petlund2009-fig8a")
    assert "lksctp" in fig8a.axes["system"] and len(fig8a) == 7 * 100
    assert len(fig8a.with_seeds(2)) == 14 and fig8a.with_seeds([5, 7]).seeds == (5, 7)


def test_unknown_names_are_reported_with_the_nearest():
    with pytest.raises(lab.UnknownStudyError, match='did you mean "petlund2009-fig8a"'):
        lab.Study.load("petlund2009-fig8aa")
    with pytest.raises(FileNotFoundError):
        lab.Study.load("./none.toml")
    with pytest.raises(ValueError, match="no profile `interactve`; did you mean `interactive`"):
        lab.simulate(profile="interactve")
    flow = dataclasses.replace(lab_kit.scenario().thin["game"], profile="thim")
    with pytest.raises(lab.StudyError, match="did you mean `thin`"):
        lab.Study(title="x", scenario=dataclasses.replace(lab_kit.scenario(), thin={"game": flow}))


def test_a_study_of_dataclasses_has_the_mistakes_of_a_file():
    claim = lab.Claim(says="x", quantity="game.latncy.p99", is_="below", than=3)
    axis = lab.Axis("loss", values=[1, 2], set={"network": {"forward": "delay 50ms loss {}%"}})
    with pytest.raises(lab.StudyError) as refused:
        lab.Study(title="x", scenario=lab_kit.scenario(), axes=[axis], claims=[claim], costs=["nothing"])
    error = refused.value
    assert len(error.mistakes) == 2 and len(str(error).splitlines()) == 2
    for line, column, what in error.mistakes:
        # The place is in the text that was made of the dataclasses.
        assert error.study_text.splitlines()[line - 1][column - 1] in "\"'["
        assert "game.latncy.p99" in what or "nothing" in what
    with pytest.raises(lab.StudyError) as of_file:
        lab.Study.from_text(error.study_text)
    assert str(of_file.value) == str(error)


def test_all_that_a_study_may_have_can_be_written_as_dataclasses():
    text = 'quote " backslash \\ line\nbell \x07 ü'
    network = lab.Network("delay 50ms", "delay 60ms", changes=[lab.Change("5s", forward="loss 100%")])
    thin = lab.ThinFlow(
        traffic=lab.messages([(0.0, 100), (0.25, 80)]),
        recovery={"thin": {"linear_timeouts": 6}},
        receiver=lab.Receiver(ack_delay="0ms"),
        bounds=["reactive"],
        late=["200ms"],
    )
    scenario = lab.Scenario(
        duration="10s",
        network=network,
        thin={"game": thin},
        bulk={"bulk": lab.BulkFlow(profile="rfc9260")},
        web={"web": lab.WebFlow(count=2)},
        udp={"udp": lab.UdpFlow("rate 20kbit size 100")},
    )
    made = lab.Study(title=text, about=text, scenario=scenario, seeds=[3], name="all")
    assert (made.title, made.about, made.name) == (text, text.strip(), "all")
    assert lab.Study.from_text(made.text).title == text
    run = lab.run_scenario(scenario)
    assert run.quantities["game.messages"] == 40
    assert {"game", "bulk", "web", "udp"} == set(run.to_polars()["flow"])


#: Calls, their error, and its text: the argument, and what is allowed or to be done.
BAD_INPUT = [
    (lambda: lab.Study(title="x", scenario={"duration": "60s"}), TypeError, "scenario must be a rexmit.lab.Scenario, not dict"),
    (lambda: lab.Study(title="x", scenario=lab_kit.scenario(), axes="loss"), TypeError, "axis must be a list, not str"),
    (lambda: lab.Study(title=datetime.date.today(), scenario=lab_kit.scenario()), TypeError, "title .* date: use str, numbers"),
    (lambda: lab.Study(title="x", scenario=lab_kit.scenario(), seeds=0), lab.StudyError, "at least one seed"),
    (lambda: lab.Study(title="x", scenario=lab_kit.scenario(), seeds=10**30), lab.StudyError, "seeds"),
    (lambda: lab.Study(title="x", scenario=lab_kit.scenario(duration=60)), lab.StudyError, "5:12: .*expected a string"),
    (lambda: lab.Study(title="x", scenario=lab_kit.scenario(), costs=[math.nan]), ValueError, r"costs\[0\] is nan: .* finite"),
    (lambda: lab.Study.load(7), TypeError, "int"),
    (lambda: lab.Study.from_text("\x00"), lab.StudyError, "study.toml:1:1: "),
    (lambda: lab_kit.study().with_seeds([1, 1]), ValueError, "seeds must be 1 to 1000 different numbers"),
    (lambda: lab_kit.study().with_seeds(0), ValueError, "seeds must be 1 to 1000 different numbers"),
    (lambda: lab_kit.study().with_seeds(1001), ValueError, "seeds must be 1 to 1000 different numbers"),
    (lambda: lab_kit.study().with_seeds([-1]), ValueError, f"a seed is -1; it must be from 0 to {2**64 - 1}"),
    (lambda: lab_kit.study().with_seeds([2**64]), ValueError, f"a seed is {2**64}; it must be from 0 to {2**64 - 1}"),
    (lambda: lab_kit.study().with_seeds(["1"]), TypeError, "seeds"),
    (lambda: lab_kit.study().run(executor=3), TypeError, "executor must have a method submit"),
    (lambda: lab_kit.study().run(executor=lab.Study, jobs=2), TypeError, "executor must have a method submit"),
    (lambda: lab_kit.study().run(jobs=0), ValueError, "jobs is 0; it must be from 1"),
    (lambda: lab_kit.study().run(jobs=-(2**70)), ValueError, f"jobs is -{2**70}; it must be from 1"),
    (lambda: lab_kit.study().run(store="/proc/none"), lab.StoreError, "/proc/none.* choose another directory with store="),
    (lambda: lab.simulate(link=3), TypeError, "link must be text .* or a rexmit.lab.Network, not int"),
    (lambda: lab.simulate(link="delay"), ValueError, "^network.forward: .* a time such as 50ms$"),
    (lambda: lab.simulate(traffic=3), TypeError, "traffic must be text .*, not int"),
    (lambda: lab.simulate(traffic="every"), ValueError, "^thin.flow.traffic: .* a time such as 250ms$"),
    (lambda: lab.simulate(duration=3), ValueError, "^duration: .* expected a string$"),
    (lambda: lab.simulate(seed=-1), ValueError, f"seed is -1; it must be from 0 to {2**64 - 1}"),
    (lambda: lab.simulate(seed=2**64), ValueError, f"seed is {2**64}; it must be from 0 to {2**64 - 1}"),
    (lambda: lab.simulate(seed="1"), TypeError, "seed"),
    (lambda: lab.simulate(recovery={"thin": {"linear": 6}}), ValueError, "^thin.flow.recovery: .*`linear_timeouts`"),
    (lambda: lab.simulate(transport="upd"), ValueError, "^thin.flow.transport: .* expected one of `sctp`, `tcp`"),
    (lambda: lab.read_capture(ROOT / "README.md"), ValueError, "README.md"),
    (lambda: lab.read_capture("/none"), FileNotFoundError, "/none"),
    (lambda: rexmit._rexmit.execute_run("{}", lab._worker.module_file()), ValueError, "not a run"),
    (lambda: rexmit._rexmit.program("/none"), OSError, "/none"),
]


@pytest.mark.parametrize(("make", "error", "text"), BAD_INPUT)
def test_bad_input_is_refused_with_what_to_do(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_the_place_of_a_mistake_in_a_scenario_is_its_field():
    scenario = lab_kit.scenario()
    changes = [lab.Change("1s", forward="delay 1ms"), lab.Change("2s", forward="delay")]
    for changed, place in (
        ({"network": lab.Network("delay 50ms", changes=changes)}, "network.changes.forward"),
        ({"second_network": lab.Network("delay 50ms", edge="dela")}, "second_network.edge"),
        ({"thin": {"game": lab.ThinFlow("every 1s size 1", late=["1s", "2"])}}, "thin.game.late"),
        ({"drain": "1"}, "drain"),
    ):
        with pytest.raises(ValueError, match=f"^{place}: "):
            lab.run_scenario(dataclasses.replace(scenario, **changed))


def test_no_text_makes_it_panic():
    chance = random.Random(1)
    text = lab_kit.study().text
    for _ in range(300):
        at = chance.randrange(len(text))
        changed = text[:at] + chance.choice(["", "9", "-", '"', "[", "e9", "\n", "{}", "ü"]) + text[at + chance.randrange(3) :]
        try:
            lab.Study.from_text(changed)
        except lab.StudyError as error:
            assert error.mistakes


def test_results_are_tables_verdicts_figures_and_a_report(results, tmp_path):
    assert (results.found, results.executed, results.failed) == (0, 36, [])
    runs = results.to_polars()
    assert runs.height == 36 and runs["error"].null_count() == 36
    assert runs["run"].n_unique() == 36
    assert set(runs["profile"]) == {"rfc9260", "thin", "interactive"} and set(runs["loss"]) == {"1 %", "5 %"}
    assert runs["seed"].unique().sort().to_list() == [1, 2, 3, 4, 5, 6]
    messages = results.to_polars("messages")
    assert messages.height == 36 * 240
    # The table of messages, that of runs and the distribution say the same.
    one = {"profile": "thin", "loss": "5 %", "seed": 2}
    latencies = messages.filter(**one)["application_ms"]
    assert latencies.max() == pytest.approx(runs.filter(**one)["game.latency.max"].item(), rel=2e-3)
    steps = results.to_polars("game.latency").filter(**one)
    assert steps["count"].sum() == latencies.len()
    with pytest.raises(ValueError, match="'game.latency'"):
        results.to_polars("latency")
    frame = results.to_pandas()
    assert frame["game.latency.p99"].to_list() == runs["game.latency.p99"].to_list()
    assert frame["profile"].to_list() == runs["profile"].to_list()
    frame.loc[0, "seed"] = 77
    assert 77 not in results.to_polars()["seed"]
    (verdict,) = results.verdicts()
    assert (verdict.says, verdict.verdict) == ("interactive waits less", "holds")
    assert [comparison.point for comparison in verdict.comparisons] == [{"loss": "1 %"}, {"loss": "5 %"}]
    assert verdict.comparisons[1].left.mean < verdict.comparisons[1].right.mean
    report = results.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == report and "interactive waits less" in report
    folder = results.save(tmp_path)
    assert polars.read_parquet(folder / "runs.parquet").equals(runs)
    assert polars.read_parquet(folder / "messages.parquet").equals(messages)
    assert "interactive waits less" in results._repr_html_()


def test_studies_of_different_titles_are_saved_beside_each_other(tmp_path):
    for title, name in (
        ("Two profiles: 5 % loss", "two-profiles-5-loss"),
        ("Other", "other"),
        ("…", "study"),
        ("x" * 300, "x" * 100),
    ):
        made = lab.Study(title=title, scenario=lab_kit.scenario("1s"), seeds=1)
        assert made.name == lab.Study.from_text(made.text).name == name
        assert made.run(store=tmp_path / "store").save(tmp_path / "out") == tmp_path / "out" / name
    assert lab.Study(title="Other", scenario=lab_kit.scenario("1s"), name="mine").name == "mine"
    assert lab.Study.from_text(made.text, "mine").name == "mine"


def test_figures_of_two_quantities_are_moved_and_zoomed(results):
    for title, is_moved in (("99th percentile", True), ("By profile", False), ("Distribution", True), ("Cost", True)):
        params = results.plot(title).to_dict().get("params", [])
        bound = [it["bind"] for it in params if it.get("select", {}).get("type") == "interval"]
        assert bound == ["scales"] * is_moved, title
    # One selection per figure: moving one leaves the others.
    params = results.plot().to_dict()["params"]
    assert len({it["name"] for it in params}) == 3 and all(len(it["views"]) == 1 for it in params)


def test_figures_are_charts(results, tmp_path):
    assert results.figures() == ["99th percentile", "By profile", "Distribution", "Cost"]
    for number, title in enumerate(results.figures()):
        chart = results.plot(number)
        assert chart.to_dict() == results.plot(title).to_dict()
    assert isinstance(results.plot(), altair.VConcatChart)
    results.plot("99th percentile").save(tmp_path / "figure.svg")
    assert "<svg" in (tmp_path / "figure.svg").read_text()
    results.plot("By profile").save(tmp_path / "figure.png")
    values = results.plot("99th percentile").to_dict()["data"]["values"]
    expected = results.to_polars().filter(profile="thin", loss="5 %")["game.latency.p99"].mean()
    (point,) = (row for row in values if row["group"] == "thin" and row["x"] == 5)
    assert point["y"] == pytest.approx(expected)
    with pytest.raises(ValueError, match="'By profile'"):
        results.plot("By profil")
    with pytest.raises(ValueError, match="from 0 to 3"):
        results.plot(4)


class ArrowArray(ctypes.Structure):
    """The C data interface, as far as it is needed."""


ArrowArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", ctypes.c_void_p),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]


class ArrowStream(ctypes.Structure):
    _fields_ = [
        ("get_schema", ctypes.c_void_p),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ArrowArray))),
    ]


def buffers(table, columns):
    """The addresses of the values of some columns, in what `table` hands over."""
    capsule = table.__arrow_c_stream__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    stream = pointer(capsule, b"arrow_array_stream")
    batch = ArrowArray()
    assert ArrowStream.from_address(stream).get_next(stream, ctypes.byref(batch)) == 0
    assert batch.length == len(table)
    return [batch.children[column].contents.buffers[1] for column in columns]


def test_frames_share_the_memory_of_the_results(results):
    table = results.table("messages")
    columns = [table.column_names.index(name) for name in ("intended_s", "bytes", "application_ms", "profile")]
    frame = polars.DataFrame(table)
    assert frame.columns == list(table.column_names)
    assert buffers(frame, columns) == buffers(table, columns)
    assert buffers(results.table("messages"), columns) != buffers(table, columns), "another table has its own memory"


def test_one_run_is_the_same_every_time_and_has_its_packets():
    settings = {"link": "delay 50ms loss 5%", "traffic": "every 100ms size 100", "duration": "30s"}
    first, again, other = (lab.simulate(**settings, seed=seed) for seed in (1, 1, 2))
    packets = first.to_polars()
    assert packets.equals(again.to_polars()) and not packets.equals(other.to_polars())
    assert first.quantities == again.quantities
    forward = packets.filter(direction="forward")
    assert forward["arrived_s"].null_count() == forward["lost"].count() > 0
    assert forward["payload_bytes"].sum() - forward["repeated_bytes"].sum() == 300 * 100
    assert first.to_polars("messages").height == first.quantities["flow.messages"] == 300
    # Without losses, half a round trip.
    assert lab.simulate(link="delay 50ms", duration="5s").quantities["flow.latency.max"] == pytest.approx(50, rel=1e-3)
    tcp = lab.simulate(transport="tcp", duration="30s")
    assert tcp.to_pandas()["acknowledged"].notna().any()
    with pytest.raises(ValueError, match="'packets' or 'messages'"):
        first.to_polars("packet")


def test_ctrl_c_ends_one_run():
    code = """
import rexmit.lab as lab
print("begins", flush=True)
try:
    lab.simulate(duration="100h", link="delay 50ms loss 5%")
except KeyboardInterrupt:
    print("interrupted")
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "begins\n"
        time.sleep(0.3)
        program.send_signal(signal.SIGINT)
        # Without it the run lasts for minutes.
        assert program.communicate(timeout=20)[0] == "interrupted\n"


def test_the_traffic_of_a_file_is_replayed(tmp_path):
    rows = [("mine", 1, "s2c", at * 250_000, 100 + at) for at in range(20)] + [("mine", 1, "c2s", 5, 7)]
    file = tmp_path / "mine.csv"
    file.write_text("trace,flow_id,direction,time_us,payload_bytes\n" + "".join(f"{','.join(map(str, row))}\n" for row in rows))
    client, server = lab.read_capture(file)
    assert (client.messages, server.seconds, len(server.messages)) == (((5, 7),), 4.75, 20)
    run = lab.simulate(traffic=server.traffic, link="delay 10ms", duration="4900ms")
    messages = run.to_polars("messages")
    assert messages["bytes"].to_list() == list(range(100, 120))
    assert messages["intended_s"].diff().drop_nulls().round(6).unique().to_list() == [0.25]
    assert len(server.until(1).messages) == 4
    assert len(lab.read_capture(ROOT / "traces/ssh.csv.gz")) > 1
    file.write_text("trace,flow_id,direction,time_us,payload_bytes\nmine,1,up,0,1\n")
    with pytest.raises(ValueError, match="line 2"):
        lab.read_capture(file)


def test_a_profile_is_recommended_for_a_capture(tmp_path):
    path = ROOT / "traces/ssh.csv.gz"
    advice = lab.advise(path, rtt=0.1, loss=0.05, seeds=1, store=tmp_path)
    chosen = {row.profile: row for row in advice.rows}[advice.recommended]
    standard = advice.rows[0]
    assert standard.profile == "rfc9260"
    assert chosen.p999_ms < standard.p999_ms and chosen.bytes_per_byte <= 2 * standard.bytes_per_byte
    assert f"Choose {advice.recommended}: 99.9 %" in str(advice)
    assert {"thin-rr", "f-rto"} <= {row.profile for row in advice.rows}
    # The package is built without them here.
    assert not any(row.is_rival for row in advice.rows)
    assert "Other implementations are not compared: " in str(advice)
    assert lab.advise(path, link="delay 50ms loss 5%", seeds=1, store=tmp_path).rows == advice.rows
    cheap = lab.advise(path, rtt=0.1, loss=0.05, seeds=1, store=tmp_path, max_cost=1)
    assert cheap.results.executed == 0
    assert {row.profile: row for row in cheap.rows}[cheap.recommended].bytes_per_byte <= standard.bytes_per_byte
    for settings, error, text in (
        ({"rtt": "100ms"}, TypeError, "rtt must be a number, not str"),
        ({"rtt": -1}, ValueError, "rtt is -1: it must be finite, and at least 0"),
        ({"rtt": 10**400}, ValueError, "rtt is 1000.*: it must be finite, and at least 0"),
        ({"loss": 2}, ValueError, "loss is 2: it is a share, from 0 to 1"),
        ({"rtt": 80}, ValueError, "rtt is 80: it is in seconds, and at most 10"),
        ({"rtt": 0.1, "link": "delay 5ms"}, ValueError, "link was given beside rtt or loss"),
        ({"link": "fast"}, ValueError, "fast"),
        ({"flow": 77}, ValueError, "ssh has no flow 77: choose one of 0, 1"),
        ({"flow": -1}, ValueError, f"flow is -1; it must be from 0 to {2**32 - 1}"),
        ({"direction": "up"}, ValueError, "direction is 'up': choose 'c2s' or 's2c'"),
        ({"seeds": 0}, ValueError, "seeds is 0: it must be from 1 to 1000"),
        ({"seeds": 10**30}, ValueError, "seeds is 10*: it must be from 1 to 1000"),
        ({"seeds": "5"}, TypeError, "seeds must be an int, not str"),
        ({"max_cost": float("nan")}, ValueError, "max_cost is nan: it must be finite"),
    ):
        with pytest.raises(error, match=text):
            lab.advise(path, store=tmp_path, **settings)
    with pytest.raises(FileNotFoundError):
        lab.advise("/none")


def test_the_path_of_advice_is_estimated_or_assumed_and_it_says_which(tmp_path):
    assumed = lab.advise(ROOT / "traces/ssh.csv.gz", seeds=1, store=tmp_path)
    assert "Assumed, as the file has no ACKs: a round trip of 100 ms, 2 % loss." in assumed.about
    assert not any(row.is_rival for row in assumed.rows)
    estimated = lab.advise(ROOT / "traces/ssh.pcap.gz", loss=0.02, seeds=1, store=tmp_path)
    assert "Estimated from the capture: a round trip takes 0.0 ms." in estimated.about


def test_a_capture_is_analysed(tmp_path):
    """The retransmissions are those that Wireshark finds in it."""
    analysis = lab.analyse(ROOT / "traces/crossfire.pcap.gz")
    again = [it["sent"]["repeating_packets"] for it in analysis.directions]
    assert again == [0, 8, 0, 1, 0, 3, 0, 2]
    assert not any(it["is_exact"] for it in analysis.directions)
    frame = analysis.to_polars()
    assert len(frame) == sum(it["sent"]["ranges"] for it in analysis.directions)
    assert frame["repeated"].drop_nulls().to_list() == ["timer"] * 14
    assert frame["bytes"].sum() == sum(it["sent"]["new_bytes"] for it in analysis.directions)
    assert len(analysis.to_pandas()) == len(frame) and "RTT ms" in str(analysis)
    with pytest.raises(ValueError, match="only pcap and pcapng"):
        lab.analyse(ROOT / "traces/ssh.csv.gz")
    with pytest.raises(ValueError, match="in common"):
        lab.analyse(ROOT / "traces/ssh.pcap.gz", ROOT / "traces/crossfire.pcap.gz")
    with pytest.raises(FileNotFoundError):
        lab.analyse(tmp_path / "none.pcapng")


def test_a_sweep_is_planned_before_it_is_run():
    study = lab.Study.load(ROOT / "studies/long/limit-full-ordered.toml")
    plan = study.plan(64)
    assert (plan.runs, plan.cores) == (40_320, 64)
    assert plan.hours == pytest.approx(plan.core_hours / 64)
    assert str(plan).startswith("40,320 runs: about ") and str(plan).endswith(" on 64 cores")
    small = lab_kit.study(seeds=1)
    assert small.plan(3).core_hours == pytest.approx(small.estimated_seconds / 3600)
    assert small.plan(1000).hours == small.plan(6).hours, "it has six runs"
    assert lab_kit.study(seeds=5).estimated_seconds == pytest.approx(5 * small.estimated_seconds)
    for cores, error in ((0, ValueError), (2.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match="cores"):
            study.plan(cores)


def test_threads_run_python_during_runs(tmp_path):
    """A thread that counts gets on while runs take place, which it does not while a call holds the GIL."""
    usleep = ctypes.PyDLL(None).usleep
    assert turns_during(lambda: usleep(300_000)) == 0
    study = lab_kit.study("30min", seeds=4)
    sweep = study._study.sweep(lab._worker.module_file(), str(tmp_path))
    assert turns_during(lambda: sweep.run_here(1)) > 10
    assert turns_during(lambda: lab.simulate(traffic="every 10ms size 100", duration="10min")) > 10


def test_the_import_is_light():
    program = """
        import sys
        import rexmit
        assert "rexmit.lab" not in sys.modules
        rexmit.lab.Study
        heavy = {"polars", "pandas", "altair", "numpy", "dask", "ray", "concurrent.futures.process"} & set(sys.modules)
        assert not heavy, heavy
        try:
            rexmit.labs
        except AttributeError:
            pass
        else:
            raise AssertionError
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], cwd="/", check=True)
