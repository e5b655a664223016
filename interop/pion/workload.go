package main

import (
	"bytes"
	"encoding/binary"
	"sync"
)

// The messages of an interoperability run and the check of what arrived; the rules are stated in
// interop/README.md and followed by the Rust and C peers alike.

const (
	largestMessage = 65536
	ppid           = 53
	unordered      = ^uint32(0)
	numberBytes    = 4
)

type direction uint64

const (
	clientToServer direction = 0
	serverToClient direction = 1
)

type message struct {
	stream   uint16
	sequence uint32 // its place among the ordered ones of its stream, or unordered
	size     uint32
}

type plan struct {
	key       uint64
	direction direction
	messages  []message
}

func splitmix64(state *uint64) uint64 {
	*state += 0x9e3779b97f4a7c15
	z := *state
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

func newPlan(seed uint64, direction direction, count uint32, streams uint16) *plan {
	p := &plan{key: splitmix64(&seed), direction: direction}
	next := make([]uint32, streams)
	for number := uint32(0); number < count; number++ {
		state := p.generator(number)
		place, size := splitmix64(&state), splitmix64(&state)
		m := message{
			stream:   uint16((place & 0xffffffff) % uint64(streams)),
			sequence: unordered,
			size:     sizeOf(number, size),
		}
		if (place>>32)%3 != 0 {
			m.sequence = next[m.stream]
			next[m.stream]++
		}
		p.messages = append(p.messages, m)
	}
	return p
}

func (p *plan) generator(number uint32) uint64 {
	return p.key ^ uint64(p.direction)<<32 ^ uint64(number)
}

func sizeOf(number uint32, draw uint64) uint32 {
	if number%400 == 10 {
		return largestMessage
	}
	if number%100 < 3 {
		return number%100 + 1
	}
	below := uint64(1 << 16)
	switch {
	case draw%100 < 80:
		below = 1 << 10
	case draw%100 < 98:
		below = 1 << 12
	}
	return 1 + uint32((draw>>32)%below)
}

// payload appends message number to into, which it empties first.
func (p *plan) payload(number uint32, into []byte) []byte {
	m := p.messages[number]
	word := number << 1
	if m.sequence == unordered {
		word |= 1
	}
	state := p.generator(number)
	splitmix64(&state) // those of newPlan
	splitmix64(&state)

	le := binary.LittleEndian
	into = le.AppendUint32(into[:0], word)
	into = append(into, byte(p.direction), 0)
	into = le.AppendUint16(into, m.stream)
	into = le.AppendUint32(into, m.sequence)
	into = le.AppendUint32(into, m.size)
	for uint32(len(into)) < m.size {
		into = le.AppendUint64(into, splitmix64(&state))
	}
	return into[:m.size]
}

type counts struct {
	Received   uint32 `json:"received"`
	Lost       uint32 `json:"lost"`
	Duplicated uint32 `json:"duplicated"`
	OutOfOrder uint32 `json:"out_of_order"`
	Corrupted  uint32 `json:"corrupted"`
}

func (c counts) isClean() bool {
	return c.Lost+c.Duplicated+c.OutOfOrder+c.Corrupted == 0
}

// verifier checks deliveries against the plan of the other side. Several streams' readers share it.
type verifier struct {
	mutex      sync.Mutex
	plan       *plan
	isReceived []bool
	next       []uint32
	counts     counts
	expected   []byte
	complete   chan struct{}
}

func newVerifier(plan *plan, streams uint16) *verifier {
	v := &verifier{
		plan:       plan,
		isReceived: make([]bool, len(plan.messages)),
		next:       make([]uint32, streams),
		counts:     counts{Lost: uint32(len(plan.messages))},
		complete:   make(chan struct{}),
	}
	if v.counts.Lost == 0 {
		close(v.complete)
	}
	return v
}

func (v *verifier) seen() counts {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.counts
}

func (v *verifier) onDelivery(stream uint16, payload []byte) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	number, ok := v.identify(stream, payload)
	switch {
	case !ok:
		v.counts.Corrupted++
		return
	case v.isReceived[number]:
		v.counts.Duplicated++
		return
	}
	v.isReceived[number] = true
	v.counts.Received++
	v.counts.Lost--
	if sequence := v.plan.messages[number].sequence; sequence != unordered {
		if sequence < v.next[stream] {
			v.counts.OutOfOrder++
		} else {
			v.next[stream] = sequence + 1
		}
	}
	if v.counts.Lost == 0 {
		close(v.complete)
	}
}

func (v *verifier) identify(stream uint16, payload []byte) (number uint32, ok bool) {
	if len(payload) >= numberBytes {
		number = binary.LittleEndian.Uint32(payload) >> 1
		return number, v.isMessage(number, stream, payload)
	}
	// Several short messages may have the same bytes: the first not yet seen is meant.
	for n := range v.plan.messages {
		if !v.isMessage(uint32(n), stream, payload) {
			continue
		}
		number, ok = uint32(n), true
		if !v.isReceived[n] {
			break
		}
	}
	return number, ok
}

func (v *verifier) isMessage(number uint32, stream uint16, payload []byte) bool {
	if number >= uint32(len(v.plan.messages)) {
		return false
	}
	m := v.plan.messages[number]
	if m.stream != stream || m.size != uint32(len(payload)) {
		return false
	}
	v.expected = v.plan.payload(number, v.expected)
	return bytes.Equal(v.expected, payload)
}
