from collections.abc import Sequence
from typing import Optional, Union, final

from ._config import AnyProfile, AnyScheduling, Config
from ._events import Address, Event, Message
from ._statistics import Statistics

__all__ = ["PROFILES", "Endpoint", "Identity", "Trust", "__version__"]

__version__: str
PROFILES: tuple[str, ...]

@final
class Identity:
    @staticmethod
    def generate() -> Identity: ...
    @staticmethod
    def from_pem(certificate: Union[str, bytes], private_key: Union[str, bytes]) -> Identity: ...
    @staticmethod
    def from_der(certificate: bytes, private_key: bytes) -> Identity: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def certificate(self) -> bytes: ...
    @property
    def private_key(self) -> bytes: ...

@final
class Trust:
    @staticmethod
    def only(*fingerprints: str) -> Trust: ...
    @staticmethod
    def anyone() -> Trust: ...

@final
class Endpoint:
    def __new__(
        cls,
        profile: Optional[AnyProfile] = None,
        *,
        trust: Union[Trust, str],
        identity: Optional[Identity] = None,
        port: int = 5000,
        accept: bool = False,
        max_associations: int = 200_000,
        config: Optional[Config] = None,
        seed: Optional[bytes] = None,
    ) -> Endpoint: ...
    @staticmethod
    def unencrypted(
        profile: Optional[AnyProfile] = None,
        *,
        port: int = 5000,
        accept: bool = False,
        max_associations: int = 200_000,
        config: Optional[Config] = None,
        seed: Optional[bytes] = None,
    ) -> Endpoint: ...
    @property
    def fingerprint(self) -> Optional[str]: ...
    @property
    def association_count(self) -> int: ...
    def connect(self, local: Address, remote: Address, now: float, *, port: int = 5000) -> int: ...
    def receive_datagram(self, data: bytes, local: Address, remote: Address, now: float) -> None: ...
    def receive_datagrams(
        self, datagrams: Sequence[tuple[bytes, Address]], local: Address, now: float
    ) -> None: ...
    def datagrams_to_send(self, now: float) -> list[tuple[bytes, Address, Address]]: ...
    def next_event(self) -> Optional[tuple[int, Event]]: ...
    def get_timer(self) -> Optional[float]: ...
    def handle_timer(self, now: float) -> None: ...
    def send(
        self,
        association: int,
        data: Union[bytes, bytearray, memoryview],
        now: float,
        *,
        stream: int = 0,
        ordered: bool = True,
        lifetime: Optional[float] = None,
        max_retransmissions: Optional[int] = None,
        ppid: int = 0,
        immediate: bool = False,
    ) -> int: ...
    def receive(self, association: int, now: float) -> Optional[Message]: ...
    def shutdown(self, association: int, now: float) -> None: ...
    def abort(self, association: int, now: float, reason: Optional[bytes] = None) -> None: ...
    def reset_streams(
        self, association: int, now: float, streams: Optional[Sequence[int]] = None
    ) -> None: ...
    def set_priority(self, association: int, now: float, stream: int, priority: int) -> None: ...
    def set_scheduling(self, association: int, now: float, scheduling: AnyScheduling) -> None: ...
    def statistics(self, association: int) -> Statistics: ...
