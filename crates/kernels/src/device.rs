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
            let file = File::from(file);
            // Access to memory behind the end of a file ends the process.
            if offset
                .checked_add(len)
                .is_none_or(|end| file.metadata().map_or(0, |at| at.len()) < end)
            {
                return Err(lacks("memory as long as it says"));
            }
            let file = FileOffset::new(file, offset);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the parts of the queues are in the memory of the tests.
    const DESCRIPTORS: u64 = 0x1000;
    const AVAILABLE: u64 = 0x2000;
    const USED: u64 = 0x3000;
    const BUFFER: u64 = 0x4000;
    const MEMORY: u64 = 0x10000;
    /// The buffer is for the device to write.
    const WRITABLE: u16 = 2;

    fn u32s(numbers: &[u32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
    }

    fn u64s(numbers: &[u64]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
    }

    fn handle(
        device: &mut Device,
        request: Request,
        payload: &[u8],
        files: Vec<OwnedFd>,
    ) -> Result<Vec<u8>, Failure> {
        device.handle(&mut Message::example(request, payload, files))
    }

    fn empty() -> Device {
        Device::new([2, 0, 0, 0, 0, 1], Duration::from_secs(1)).unwrap()
    }

    /// A device whose queue `index` is ready, with one buffer of `len` bytes at `address`.
    fn with_buffer(index: usize, address: u64, len: u32, flags: u16) -> Device {
        let mut device = empty();
        let file = tempfile::tempfile().unwrap();
        file.set_len(MEMORY).unwrap();
        let table = [u32s(&[1, 0]), u64s(&[0, MEMORY, 0, 0])].concat();
        handle(&mut device, Request::SetMemTable, &table, vec![file.into()]).unwrap();
        let number = index as u32;
        handle(&mut device, Request::SetVringNum, &u32s(&[number, 4]), Vec::new()).unwrap();
        let addresses = [u32s(&[number, 0]), u64s(&[DESCRIPTORS, USED, AVAILABLE, 0])].concat();
        handle(&mut device, Request::SetVringAddr, &addresses, Vec::new()).unwrap();
        handle(&mut device, Request::SetVringEnable, &u32s(&[number, 1]), Vec::new()).unwrap();
        let memory = device.memory.as_ref().unwrap();
        memory.write_obj(address, GuestAddress(DESCRIPTORS)).unwrap();
        memory.write_obj(len, GuestAddress(DESCRIPTORS + 8)).unwrap();
        memory.write_obj(flags, GuestAddress(DESCRIPTORS + 12)).unwrap();
        memory.write_obj(1_u16, GuestAddress(AVAILABLE + 2)).unwrap();
        device
    }

    #[test]
    fn a_frame_is_taken_from_the_queue_and_the_kernel_notified() {
        let mut device = with_buffer(TRANSMIT, BUFFER, 12 + 60, 0);
        let memory = device.memory.as_ref().unwrap();
        memory.write_slice(&[7; 60], GuestAddress(BUFFER + 12)).unwrap();
        assert_eq!(device.transmitted().unwrap(), [[7; 60]]);
        assert!(device.transmitted().unwrap().is_empty());
        assert_eq!(device.next_call().unwrap(), Some(TRANSMIT as u32));
        assert_eq!(device.next_call().unwrap(), None);
    }

    #[test]
    fn a_kernel_that_asks_for_no_notifications_gets_none() {
        let mut device = with_buffer(TRANSMIT, BUFFER, 12 + 60, 0);
        let memory = device.memory.as_ref().unwrap();
        memory.write_obj(NO_INTERRUPT, GuestAddress(AVAILABLE)).unwrap();
        assert_eq!(device.transmitted().unwrap().len(), 1);
        assert_eq!(device.next_call().unwrap(), None);
    }

    #[test]
    fn a_frame_is_put_into_the_queue_if_there_is_room() {
        let mut device = with_buffer(RECEIVE, BUFFER, 100, WRITABLE);
        assert!(!device.deliver(&[9; 89]).unwrap(), "it does not fit");
        assert!(device.deliver(&[9; 88]).unwrap());
        assert!(!device.deliver(&[9; 88]).unwrap(), "there is no second buffer");
        let mut bytes = [0; 100];
        device.memory.as_ref().unwrap().read_slice(&mut bytes, GuestAddress(BUFFER)).unwrap();
        assert_eq!(bytes[..12], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
        assert_eq!(bytes[12..], [9; 88]);
        assert_eq!(device.next_call().unwrap(), Some(RECEIVE as u32));
    }

    #[test]
    fn addresses_outside_of_the_memory_are_errors() {
        let mut device = with_buffer(TRANSMIT, MEMORY - 4, 100, 0);
        assert!(matches!(device.transmitted(), Err(Failure::Protocol(_))));
        let mut device = with_buffer(RECEIVE, u64::MAX - 4, 100, WRITABLE);
        assert!(matches!(device.deliver(&[0; 60]), Err(Failure::Protocol(_))));
        let addresses = [u32s(&[0, 0]), u64s(&[MEMORY, USED, AVAILABLE, 0])].concat();
        let set = handle(&mut device, Request::SetVringAddr, &addresses, Vec::new());
        assert!(matches!(set, Err(Failure::Protocol(_))));
    }

    #[test]
    fn malformed_requests_are_errors() {
        let cases = [
            (Request::SetFeatures, u64s(&[1 << 63])),
            (Request::SetProtocolFeatures, u64s(&[vhost::PROTOCOL_REPLY_ACK])),
            (Request::SetBackendRequestFd, Vec::new()),
            (Request::SetMemTable, u32s(&[1, 0])),
            (Request::SetVringNum, u32s(&[2, 4])),
            (Request::SetVringNum, u32s(&[0, 3])),
            (Request::SetVringNum, u32s(&[0])),
            (Request::GetConfig, u32s(&[0, 6, 0])),
            (Request::GetConfig, u32s(&[0, 6])),
        ];
        for (request, payload) in cases {
            let answer = handle(&mut empty(), request, &payload, Vec::new());
            assert!(matches!(answer, Err(Failure::Protocol(_))), "{request:?}: {answer:?}");
        }
        // Longer than its file.
        let table = [u32s(&[1, 0]), u64s(&[0, MEMORY, 0, 0])].concat();
        let files = vec![tempfile::tempfile().unwrap().into()];
        assert!(handle(&mut empty(), Request::SetMemTable, &table, files).is_err());
    }

    #[test]
    fn the_configuration_has_the_address() {
        let request = [u32s(&[0, 8, 0]), vec![0xff; 8]].concat();
        let answer = handle(&mut empty(), Request::GetConfig, &request, Vec::new()).unwrap();
        assert_eq!(answer, [u32s(&[0, 8, 0]), vec![2, 0, 0, 0, 0, 1, 0, 0]].concat());
    }
}
