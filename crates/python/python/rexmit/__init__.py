"""SCTP over UDP for asyncio, and without I/O: lost packets of thin streams are recovered within about a round trip.

Data is not encrypted: run it inside a tunnel, or encrypt payloads.
"""

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
from ._statistics import ByCause, PathStatistics, Statistics
