//! The network device of a kernel: virtio-net (Virtio 1.2 §5.1) with one pair of queues, driven by the messages of
//! vhost-user. It has no clock: it says what the kernel has sent and which queues the kernel is to look at.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;

use virtio_queue::{Queue, QueueOwnedT, QueueT};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap};

use crate::error::Failure;
use crate::vhost::{self, Message, Request, RequestSocket};

/// The queue of frames for the kernel.
pub(crate) const RECEIVE: usize = 0;
/// The queue of frames from the kernel.
pub(crate) const TRANSMIT: usize = 1;

/// The most descriptors of a queue; the kernel asks for 256.
const MAX_QUEUE: u16 = 256;
/// The header before each frame (Virtio 1.2 §5.1.6): ten bytes that are zero without offloads, and the number of buffers.
const NET_HEADER: usize = 12;
/// The longest frame that is accepted from a kernel, in bytes: no device of this kind has a larger MTU.
const MAX_FRAME: usize = 65_535 + 14;
/// The flag of a queue in which the kernel asks for no notifications (`VRING_AVAIL_F_NO_INTERRUPT`).
const NO_INTERRUPT: u16 = 1;

/// The device has an address (`VIRTIO_NET_F_MAC`).
const F_MAC: u64 = 1 << 5;
/// The device follows Virtio 1 (`VIRTIO_F_VERSION_1`).
const F_VERSION_1: u64 = 1 << 32;
const FEATURES: u64 = F_MAC | F_VERSION_1 | vhost::F_PROTOCOL_FEATURES;
const PROTOCOL_FEATURES: u64 = vhost::PROTOCOL_REPLY_ACK
    | vhost::PROTOCOL_BACKEND_REQUESTS
    | vhost::PROTOCOL_CONFIG
    | vhost::PROTOCOL_IN_BAND;

/// A range of the kernel's memory: the address that the kernel uses in messages, the one in queues, and the length.
#[derive(Clone, Copy, Debug)]
struct Region {
    user: u64,
    guest: u64,
    len: u64,
}

/// A network device.
#[derive(Debug)]
pub(crate) struct Device {
    mac: [u8; 6],
    limit: Duration,
    memory: Option<GuestMemoryMmap>,
    regions: Vec<Region>,
    queues: [Queue; 2],
    pub(crate) requests: Option<RequestSocket>,
    /// Queues that the kernel has not looked at since they changed.
    changed: [bool; 2],
}

impl Device {
    pub(crate) fn new(mac: [u8; 6], limit: Duration) -> Result<Self, Failure> {
        let queue = || Queue::new(MAX_QUEUE).map_err(|error| invalid(&error));
        Ok(Self {
            mac,
            limit,
            memory: None,
            regions: Vec::new(),
            queues: [queue()?, queue()?],
            requests: None,
            changed: [false; 2],
        })
    }

    /// Executes `message`; returns the payload of the answer. A kick has no effect here: it is followed by
    /// [`transmitted`](Self::transmitted).
    pub(crate) fn handle(&mut self, message: &mut Message) -> Result<Vec<u8>, Failure> {
        let mut value = 0_u64;
        match message.request {
            Request::GetFeatures => value = FEATURES,
            Request::GetProtocolFeatures => value = PROTOCOL_FEATURES,
            Request::SetFeatures => {
                let [chosen] = message.u64s(0)?;
                refuse_others("features", chosen, FEATURES)?;
            }
            Request::SetProtocolFeatures => {
                let [chosen] = message.u64s(0)?;
                refuse_others("protocol features", chosen, PROTOCOL_FEATURES)?;
                if chosen != PROTOCOL_FEATURES {
                    let what = format!("it has the protocol features {chosen:#x} only");
                    return Err(Failure::Protocol(what));
                }
            }
            Request::SetOwner | Request::SetConfig | Request::VringKick => {}
            Request::SetBackendRequestFd => {
                let descriptor = message.files.pop().ok_or_else(|| lacks("its socket"))?;
                self.requests = Some(RequestSocket::new(descriptor, self.limit)?);
            }
            Request::SetMemTable => self.set_memory(message)?,
            Request::SetVringNum => {
                let [index, len] = message.u32s()?;
                let len = u16::try_from(len).unwrap_or(u16::MAX);
                self.queue(index)?.try_set_size(len).map_err(|error| invalid(&error))?;
            }
            Request::SetVringBase => {
                let [index, base] = message.u32s()?;
                let base = base as u16; // An index of a ring has 16 bits.
                let queue = self.queue(index)?;
                queue.set_next_avail(base);
                queue.set_next_used(base);
            }
            Request::SetVringAddr => self.set_addresses(message)?,
            Request::SetVringEnable => {
                let [index, is_enabled] = message.u32s()?;
                self.queue(index)?.set_ready(is_enabled != 0);
            }
            Request::GetConfig => return self.config(message),
        }
        Ok(value.to_ne_bytes().to_vec())
    }

    /// The frames that the kernel has put into its queue.
    pub(crate) fn transmitted(&mut self) -> Result<Vec<Vec<u8>>, Failure> {
        let mut frames = Vec::new();
        let Some(memory) = &self.memory else { return Ok(frames) };
        let queue = &mut self.queues[TRANSMIT];
        if !queue.ready() {
            return Ok(frames);
        }
        loop {
            let next = queue.iter(memory).map_err(|error| invalid(&error))?.next();
            let Some(chain) = next else { break };
            let head = chain.head_index();
            let mut reader = chain.reader(memory).map_err(|error| invalid(&error))?;
            let mut bytes = vec![0; reader.available_bytes().min(NET_HEADER + MAX_FRAME + 1)];
            reader.read_exact(&mut bytes)?;
            let frame = bytes.split_off(NET_HEADER.min(bytes.len()));
            if frame.len() > MAX_FRAME {
                return Err(Failure::Protocol(format!("it sent a frame above {MAX_FRAME} bytes")));
            }
            frames.push(frame);
            queue.add_used(memory, head, 0).map_err(|error| invalid(&error))?;
            self.changed[TRANSMIT] = true;
        }
        Ok(frames)
    }

    /// Puts `frame` into the kernel's queue. Returns whether there was room for it.
    pub(crate) fn deliver(&mut self, frame: &[u8]) -> Result<bool, Failure> {
        let Some(memory) = &self.memory else { return Ok(false) };
        let queue = &mut self.queues[RECEIVE];
        if !queue.ready() {
            return Ok(false);
        }
        let next = queue.iter(memory).map_err(|error| invalid(&error))?.next();
        let Some(chain) = next else { return Ok(false) };
        let head = chain.head_index();
        let mut writer = chain.writer(memory).map_err(|error| invalid(&error))?;
        if writer.available_bytes() < NET_HEADER + frame.len() {
            queue.go_to_previous_position();
            return Ok(false);
        }
        let mut header = [0; NET_HEADER];
        header[10..].copy_from_slice(&1_u16.to_le_bytes());
        writer.write_all(&header)?;
        writer.write_all(frame)?;
        let len = (NET_HEADER + frame.len()) as u32;
        queue.add_used(memory, head, len).map_err(|error| invalid(&error))?;
        self.changed[RECEIVE] = true;
        Ok(true)
    }

    /// The next queue that the kernel has to look at, and wants to be notified of.
    pub(crate) fn next_call(&mut self) -> Result<Option<u32>, Failure> {
        for index in [RECEIVE, TRANSMIT] {
            if !std::mem::take(&mut self.changed[index]) {
                continue;
            }
            let Some(memory) = &self.memory else { continue };
            let flags = memory.read_obj::<u16>(GuestAddress(self.queues[index].avail_ring()));
            let flags = u16::from_le(flags.map_err(|error| invalid(&error))?);
            if flags & NO_INTERRUPT == 0 {
                return Ok(Some(index as u32));
            }
        }
        Ok(None)
    }

    fn queue(&mut self, index: u32) -> Result<&mut Queue, Failure> {
        let queue = self.queues.get_mut(index as usize);
        queue.ok_or_else(|| Failure::Protocol(format!("its network device has no queue {index}")))
    }

    /// Maps the memory that the kernel shares.
    fn set_memory(&mut self, message: &mut Message) -> Result<(), Failure> {
        const HEADER: usize = 8;
        const REGION: usize = 32;
        let [count] = message.u32s()?;
        let files: Vec<OwnedFd> = message.files.drain(..).collect();
        if count as usize != files.len() || count == 0 {
            let what = format!("its memory has {count} regions and {} files", files.len());
            return Err(Failure::Protocol(what));
        }
        self.regions.clear();
        let mut ranges = Vec::new();
        for (place, file) in files.into_iter().enumerate() {
            let [guest, len, user, offset] = message.u64s(HEADER + place * REGION)?;
            self.regions.push(Region { user, guest, len });
            let size = usize::try_from(len).map_err(|_| lacks("a possible length"))?;
            let file = FileOffset::new(File::from(file), offset);
            ranges.push((GuestAddress(guest), size, Some(file)));
        }
        let memory = GuestMemoryMmap::from_ranges_with_files(ranges);
        self.memory = Some(memory.map_err(|error| invalid(&error))?);
        Ok(())
    }

    fn set_addresses(&mut self, message: &Message) -> Result<(), Failure> {
        let [index, _] = message.u32s()?;
        let addresses: [u64; 3] = message.u64s(8)?;
        let mut guest = [GuestAddress(0); 3];
        for (guest, user) in guest.iter_mut().zip(addresses) {
            *guest = self.guest_address(user)?;
        }
        let [descriptors, used, available] = guest;
        let queue = self.queue(index)?;
        let set = queue
            .try_set_desc_table_address(descriptors)
            .and_then(|()| queue.try_set_used_ring_address(used))
            .and_then(|()| queue.try_set_avail_ring_address(available));
        set.map_err(|error| invalid(&error))
    }

    fn guest_address(&self, user: u64) -> Result<GuestAddress, Failure> {
        let inside = |region: &&Region| {
            user.checked_sub(region.user).is_some_and(|offset| offset < region.len)
        };
        let region = self.regions.iter().find(inside);
        let region = region.ok_or_else(|| {
            Failure::Protocol(format!("the address {user:#x} is outside of the shared memory"))
        })?;
        Ok(GuestAddress(region.guest.saturating_add(user - region.user)))
    }

    /// The answer with the configuration of the device, of which only the address is set.
    fn config(&self, message: &Message) -> Result<Vec<u8>, Failure> {
        const HEADER: usize = 12;
        let [offset, size, _] = message.u32s()?;
        let mut answer = message.payload().to_vec();
        if answer.len() - HEADER != size as usize {
            return Err(lacks("room for the configuration"));
        }
        for (place, byte) in (offset as usize..).zip(&mut answer[HEADER..]) {
            *byte = self.mac.get(place).copied().unwrap_or(0);
        }
        Ok(answer)
    }
}

fn invalid(error: &dyn std::fmt::Display) -> Failure {
    Failure::Protocol(format!("its network device: {error}"))
}

fn lacks(what: &str) -> Failure {
    Failure::Protocol(format!("a request to its network device lacks {what}"))
}

fn refuse_others(name: &str, chosen: u64, offered: u64) -> Result<(), Failure> {
    if chosen & !offered == 0 {
        return Ok(());
    }
    Err(Failure::Protocol(format!("it chose the {name} {chosen:#x} among {offered:#x}")))
}
