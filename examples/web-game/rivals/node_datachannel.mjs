// A server of snapshots by node-datachannel (libdatachannel): reads offers, a line of JSON each, and prints the answers.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const INTERVAL = 50;
// It is installed where this is run, not beside this file.
const { RTCPeerConnection } = createRequire(`${process.cwd()}/`)("node-datachannel/polyfill");
const connections = [];
const now = () => (performance.timeOrigin + performance.now()).toFixed(2);

async function answer(offer) {
  const connection = new RTCPeerConnection({ iceServers: [] });
  connections.push(connection);
  connection.ondatachannel = ({ channel }) => {
    let n = 0;
    const ticks = setInterval(() => channel.send(`{"n":${(n += 1)},"t":${now()},"balls":[]}`), INTERVAL);
    channel.onclose = () => clearInterval(ticks);
    channel.onmessage = ({ data }) => Number.isFinite(Number(data)) && channel.send(`{"asked":${data},"t":${now()}}`);
  };
  await connection.setRemoteDescription({ type: "offer", sdp: offer });
  await connection.setLocalDescription(await connection.createAnswer());
  while (connection.iceGatheringState !== "complete") await new Promise((resolve) => setTimeout(resolve, 5));
  return connection.localDescription.sdp;
}

for await (const line of createInterface({ input: process.stdin }))
  console.log(JSON.stringify(await answer(JSON.parse(line))));
