// werift or node-datachannel (libdatachannel) as a peer of the example `channels`: offers or answers, and checks what comes
// back. Prints one line of JSON.
import { createRequire } from "node:module";

const [library, site, role, number] = process.argv.slice(2);
const count = Number(number);
// werift 0.24 accepts no larger messages (a=max-message-size:65536).
const largest = library === "werift" ? 64 * 1024 : 256 * 1024;
// They are installed where this is run, not beside this file.
const require = createRequire(`${process.cwd()}/`);
const { RTCPeerConnection } = require(library === "werift" ? "werift" : "node-datachannel/polyfill");

const once = (target, name) =>
  new Promise((resolve) => {
    target[`on${name}`] = (event) => resolve(event);
  });
const bytes = (data) => (typeof data === "string" ? data : Buffer.from(data).toString("hex"));

async function post(url, body) {
  const response = await fetch(url, { method: "POST", body });
  if (!response.ok) throw new Error(await response.text());
  return response.text();
}

// The description with its candidates.
async function gathered(connection) {
  const end = Date.now() + 5000;
  while (connection.iceGatheringState !== "complete" && Date.now() < end)
    await new Promise((resolve) => setTimeout(resolve, 20));
  return connection.localDescription.sdp;
}

// werift 0.24 crashes if the peer's INIT comes before its own SCTP has started, as it has no number for a channel then: such
// packets are dropped, and the peer sends them again.
function dropEarlyPackets({ sctpTransport }) {
  const dtls = sctpTransport.dtlsTransport;
  const receive = dtls.dataReceiver;
  dtls.dataReceiver = (packet) => {
    if (sctpTransport.dataChannelId !== undefined) return receive(packet);
  };
}

async function connect(connection) {
  if (role === "offerer") {
    await connection.setLocalDescription(await connection.createOffer());
    let offer = await gathered(connection);
    // werift 0.24 as the DTLS server does not retransmit a lost last flight (RFC 6347 §4.2.4): it is to be the client.
    if (library === "werift") offer = offer.replace("a=setup:actpass", "a=setup:active");
    const answer = await post(`${site}/offer`, offer);
    await connection.setRemoteDescription({ type: "answer", sdp: answer });
    if (library === "werift") dropEarlyPackets(connection);
    return;
  }
  const response = await fetch(`${site}/offer`);
  await connection.setRemoteDescription({ type: "offer", sdp: await response.text() });
  await connection.setLocalDescription(await connection.createAnswer());
  if (library === "werift") dropEarlyPackets(connection);
  await post(site + response.headers.get("location"), await gathered(connection));
}

async function exchange(channel) {
  const received = [];
  const all = new Promise((resolve) => {
    channel.onmessage = ({ data }) => {
      received.push(parseInt(data, 10));
      if (received.length === count) resolve();
    };
  });
  for (let n = 0; n < count; n += 1) {
    channel.send(`${n} `.padEnd(100, "."));
    if (n % 10 === 9) await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await all;
  return received;
}

// Whether each of many channels opens, and has its own echo.
async function channels(connection) {
  const all = Array.from({ length: 100 }, (_, n) => connection.createDataChannel(`channel ${n}`));
  await Promise.all(all.map((channel) => once(channel, "open")));
  const echoes = all.map(async (channel, n) => {
    const echo = once(channel, "message");
    channel.send(`${n}`);
    return (await echo).data.toString() === `${n}`;
  });
  return (await Promise.all(echoes)).every((isRight) => isRight);
}

async function run() {
  const connection = new RTCPeerConnection({ iceServers: [] });
  const ordered = connection.createDataChannel("ordered");
  const unordered = connection.createDataChannel("unordered", { ordered: false });
  const opened = [ordered, unordered].map((channel) => once(channel, "open"));
  await connect(connection);
  await Promise.all(opened);
  // werift 0.24 delivers ordered messages whose TSNs do not follow each other only when the next one arrives: one
  // channel after the other.
  const exchanges = [];
  for (const channel of [ordered, unordered]) {
    exchanges.push(exchange(channel));
    if (library === "werift") await exchanges.at(-1);
  }
  const [first, second] = await Promise.all(exchanges);
  const inOrder = (numbers) => numbers.length === count && numbers.every((number, n) => number === n);
  const found = { ordered: inOrder(first), unordered: inOrder([...second].sort((a, b) => a - b)) };
  // werift 0.24 sends no byte for an empty string, which SCTP cannot carry (RFC 8831 §6.6).
  const messages = [...(library === "werift" ? [] : [""]), "é", Buffer.from(Uint8Array.from({ length: largest }, (_, n) => n * 7))];
  const kinds = [];
  for (const message of messages) {
    const echo = once(ordered, "message");
    ordered.send(message);
    kinds.push(bytes((await echo).data) === bytes(message));
  }
  found.kinds = kinds.every((isRight) => isRight);
  found.channels = await channels(connection);
  let closed = once(unordered, "close");
  unordered.send("close");
  await closed;
  closed = once(ordered, "close");
  ordered.close();
  await closed;
  found.closing = true;
  await connection.close();
  return found;
}

setTimeout(() => {
  console.error("nothing happens");
  process.exit(1);
}, 60000).unref();
const found = await run();
console.log(JSON.stringify(found));
process.exit(0);
