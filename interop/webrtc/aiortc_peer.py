"""aiortc as a peer of the example `channels`: offers or answers, and checks what comes back. Prints one line of JSON."""

import asyncio
import json
import sys
import urllib.request

from aiortc import RTCPeerConnection, RTCSessionDescription

LARGEST = 256 * 1024


def http(method, url, body=None):
    request = urllib.request.Request(url, method=method, data=body and body.encode())
    with urllib.request.urlopen(request, timeout=30) as response:
        return response.read().decode(), response.headers


async def connect(connection, site, role):
    if role == "offerer":
        await connection.setLocalDescription(await connection.createOffer())
        answer, _ = await asyncio.to_thread(
            http, "POST", f"{site}/offer", connection.localDescription.sdp
        )
        await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
    else:
        offer, headers = await asyncio.to_thread(http, "GET", f"{site}/offer")
        await connection.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await connection.setLocalDescription(await connection.createAnswer())
        url = site + headers["Location"]
        await asyncio.to_thread(http, "POST", url, connection.localDescription.sdp)


def event(channel, name):
    """A future of the next event of this name."""
    future = asyncio.get_running_loop().create_future()

    def happened(*values):
        if not future.done():
            future.set_result(values[0] if values else None)

    channel.once(name, happened)
    return future


async def exchange(channel, count):
    """Sends `count` messages, and returns the numbers of those that come back."""
    received = []
    done = asyncio.get_running_loop().create_future()

    def gather(message):
        received.append(int(message.split()[0]))
        if len(received) == count:
            done.set_result(None)

    channel.on("message", gather)
    for n in range(count):
        channel.send(f"{n} ".ljust(100, "."))
        if n % 10 == 9:
            await asyncio.sleep(0.01)
    await done
    channel.remove_listener("message", gather)
    return received


async def channels(connection):
    """Whether each of many channels opens, and has its own echo."""
    all_of = [connection.createDataChannel(f"channel {n}") for n in range(100)]
    opened = [event(channel, "open") for channel in all_of]
    await asyncio.gather(*(future for channel, future in zip(all_of, opened) if channel.readyState != "open"))
    echoes = [event(channel, "message") for channel in all_of]
    for n, channel in enumerate(all_of):
        channel.send(f"{n}")
    return await asyncio.gather(*echoes) == [f"{n}" for n in range(100)]


async def run(site, role, count):
    connection = RTCPeerConnection()
    ordered = connection.createDataChannel("ordered")
    unordered = connection.createDataChannel("unordered", ordered=False)
    timed = connection.createDataChannel("timed", maxPacketLifeTime=60000)
    await connect(connection, site, role)
    opened = [event(channel, "open") for channel in (ordered, unordered, timed)]
    pending = [
        future
        for channel, future in zip((ordered, unordered, timed), opened)
        if channel.readyState != "open"
    ]
    await asyncio.gather(*pending)
    first, second = await asyncio.gather(exchange(ordered, count), exchange(unordered, count))
    found = {"ordered": first == list(range(count)), "unordered": sorted(second) == list(range(count))}
    kinds = []
    for message in ("", b"", "é", bytes(n * 7 % 256 for n in range(LARGEST))):
        echo = event(ordered, "message")
        ordered.send(message)
        kinds.append(await echo == message)
    found["kinds"] = all(kinds)
    found["channels"] = await channels(connection)
    closed = event(unordered, "close")
    unordered.send("close")
    await closed
    closed = event(ordered, "close")
    ordered.close()
    await closed
    found["closing"] = True
    await connection.close()
    return found


if __name__ == "__main__":
    site, role, count = sys.argv[1:]
    print(json.dumps(asyncio.run(asyncio.wait_for(run(site, role, int(count)), 120))))
