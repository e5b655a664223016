"""Exceptions. Each text says what to do."""


class RexmitError(Exception):
    """Base of the exceptions defined by rexmit."""


class ConnectError(RexmitError, ConnectionError):
    """No association was set up."""


class HandshakeError(ConnectError):
    """This side or the peer refused the other's certificate, or the DTLS handshake failed; the text says which, and has
    the fingerprint."""


class ConnectTimeoutError(ConnectError, TimeoutError):
    """The peer did not answer within the time limit."""


class ClosedError(RexmitError, ConnectionError):
    """The association is closing, or has ended."""


class BufferFullError(RexmitError):
    """There is no room in the send buffer: wait, or use ``await stream.send(…)``, which waits."""


class UnknownProfileError(RexmitError, ValueError):
    """There is no profile of this name; the text has the most similar one."""


class InternalError(RexmitError, RuntimeError):
    """A defect of rexmit. The endpoint cannot be used any more."""
