"""Calls of the socket API on SCTP sockets, by what they are about; `sockets.py` runs one of them."""
