"""A small study for the tests of the laboratory; imported by worker processes, too."""

import os

from rexmit import lab
from rexmit.lab import Axis, Claim, Figure, Network, Point, Scenario, Study, ThinFlow


def scenario(duration="60s", **settings):
    flow = ThinFlow(traffic="every 250ms size 100", profile="rfc9260")
    return Scenario(duration=duration, network=Network("delay 50ms loss 5%"), thin={"game": flow}, **settings)


def study(duration="60s", seeds=6, **settings):
    profiles = ("rfc9260", "thin", "interactive")
    points = [Point(name, {"thin": {"game": {"profile": name}}}) for name in profiles]
    losses = Axis("loss", values=[1, 5], unit="%", set={"network": {"forward": "delay 50ms loss {}%"}})
    says = {"says": "interactive waits less", "quantity": "game.latency.p99"}
    claim = Claim(**says, at={"profile": "interactive"}, is_="below", than={"at": {"profile": "rfc9260"}})
    figures = [
        Figure("99th percentile", "lines", x="loss", y="game.latency.p99"),
        Figure("By profile", "bars", about="Several words", x="profile", y="game.latency.p99", at={"loss": "5 %"}),
        Figure("Distribution", "ccdf", x="game.latency", x_axis={"log": True}),
        Figure("Cost", "scatter", x="game.packets_per_message", y="game.latency.p99"),
    ]
    return Study(
        title="Small",
        scenario=scenario(duration, **settings),
        seeds=seeds,
        axes=[Axis("profile", points), losses],
        claims=[claim],
        figures=figures,
    )


def pretend_another_version():
    """The initializer of a worker that has another version."""
    lab._worker.VERSION = "0.0.1"


def end_process(*_):
    """A worker that is lost."""
    os._exit(1)
