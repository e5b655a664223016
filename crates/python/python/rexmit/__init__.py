"""SCTP over UDP for asyncio, and without I/O: lost packets of thin streams are recovered within about a round trip.

Associations are encrypted by DTLS 1.3, and peers know each other by the fingerprints of their certificates. What does
not encrypt has ``unencrypted`` in its name. The module `rexmit.lab` has studies and simulations.
"""

from typing import TYPE_CHECKING, Any

from ._association import Association, Stream
from ._client import connect, connect_unencrypted
from ._config import (
    AnyProfile,
    AnyScheduling,
    Budget,
    Config,
    Profile,
    ProfileName,
    Scheduling,
    SchedulingName,
)
from ._errors import (
    BufferFullError,
    ClosedError,
    ConnectError,
    ConnectTimeoutError,
    HandshakeError,
    InternalError,
    RexmitError,
    UnknownProfileError,
)
from ._events import (
    Address,
    Closed,
    Connected,
    DataPathChanged,
    Event,
    EventsDropped,
    Infeasible,
    Message,
    MessageAcknowledged,
    MessageDropped,
    MessageFailed,
    MessageSent,
    PathStatus,
    PeerError,
    PeerResetStreams,
    PeerRestarted,
    PeerShutdown,
    Readable,
    StreamsReset,
    Writable,
)
from ._rexmit import PROFILES, Endpoint, Identity, Trust, __version__
from ._server import Server, serve, serve_unencrypted
from ._statistics import ByCause, PathStatistics, Statistics

if TYPE_CHECKING:
    from . import lab

__all__ = [
    "Address",
    "AnyProfile",
    "AnyScheduling",
    "Association",
    "Budget",
    "BufferFullError",
    "ByCause",
    "Closed",
    "ClosedError",
    "Config",
    "ConnectError",
    "ConnectTimeoutError",
    "Connected",
    "DataPathChanged",
    "Endpoint",
    "Event",
    "EventsDropped",
    "HandshakeError",
    "Identity",
    "Infeasible",
    "InternalError",
    "Message",
    "MessageAcknowledged",
    "MessageDropped",
    "MessageFailed",
    "MessageSent",
    "PROFILES",
    "PathStatistics",
    "PathStatus",
    "PeerError",
    "PeerResetStreams",
    "PeerRestarted",
    "PeerShutdown",
    "Profile",
    "ProfileName",
    "Readable",
    "RexmitError",
    "Scheduling",
    "SchedulingName",
    "Server",
    "Statistics",
    "Stream",
    "StreamsReset",
    "Trust",
    "UnknownProfileError",
    "Writable",
    "__version__",
    "connect",
    "connect_unencrypted",
    "lab",
    "serve",
    "serve_unencrypted",
]


def __getattr__(name: str) -> Any:
    # Imported when it is used, so that the transport alone is imported in a few milliseconds.
    if name == "lab":
        import importlib

        return importlib.import_module("rexmit.lab")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
