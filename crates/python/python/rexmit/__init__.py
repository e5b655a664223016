"""SCTP over UDP for asyncio, and without I/O: lost packets of thin streams are recovered within about a round trip.

Data is not encrypted: run it inside a tunnel, or encrypt payloads.
"""

from ._association import Association, Stream
from ._client import connect
from ._config import AnyProfile, Config, Profile, ProfileName
from ._errors import (
    BufferFullError,
    ClosedError,
    ConnectError,
    ConnectTimeoutError,
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
    Message,
    MessageAcknowledged,
    MessageFailed,
    MessageSent,
    Missed,
    PathStatus,
    PeerError,
    PeerResetStreams,
    PeerRestarted,
    PeerShutdown,
    Readable,
    StreamsReset,
    Writable,
)
from ._rexmit import PROFILES, Endpoint, __version__
from ._server import Server, serve
from ._statistics import ByCause, PathStatistics, Statistics

__all__ = [
    "Address",
    "AnyProfile",
    "Association",
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
    "InternalError",
    "Message",
    "MessageAcknowledged",
    "MessageFailed",
    "MessageSent",
    "Missed",
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
    "Server",
    "Statistics",
    "Stream",
    "StreamsReset",
    "UnknownProfileError",
    "Writable",
    "__version__",
    "connect",
    "serve",
]
