package main

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// The chunk types looked at here (RFC 9260 section 3.2).
const (
	commonHeader     = 12
	abortChunk       = 6
	shutdownAck      = 8
	shutdownComplete = 14
)

// udpConn is one UDP socket towards one other address. It outlives the association: closing it, as
// the association does, only ends reading.
type udpConn struct {
	socket    *net.UDPConn
	remote    atomic.Pointer[net.UDPAddr]
	closed    chan struct{}
	closeOnce sync.Once

	hasShutdownComplete, hasAbort atomic.Bool
}

func newUDPConn(local, remote *net.UDPAddr) (*udpConn, error) {
	socket, err := net.ListenUDP("udp", local)
	if err != nil {
		return nil, err
	}
	c := &udpConn{socket: socket, closed: make(chan struct{})}
	c.remote.Store(remote)
	return c, nil
}

func (c *udpConn) look(packet []byte) {
	if len(packet) <= commonHeader {
		return
	}
	switch packet[commonHeader] {
	case shutdownComplete:
		c.hasShutdownComplete.Store(true)
	case abortChunk:
		c.hasAbort.Store(true)
	}
}

func (c *udpConn) Read(buffer []byte) (int, error) {
	n, from, err := c.socket.ReadFromUDP(buffer)
	select {
	case <-c.closed:
		return 0, io.EOF
	default:
	}
	if err != nil {
		return 0, err
	}
	c.remote.Store(from)
	c.look(buffer[:n])
	return n, nil
}

// Write sends a packet; what the network refuses is lost.
func (c *udpConn) Write(packet []byte) (int, error) {
	c.look(packet)
	if remote := c.remote.Load(); remote != nil {
		_, _ = c.socket.WriteToUDP(packet, remote)
	}
	return len(packet), nil
}

func (c *udpConn) Close() error {
	c.closeOnce.Do(func() {
		close(c.closed)
		_ = c.socket.SetReadDeadline(time.Now()) // wakes Read
	})
	return nil
}

func (c *udpConn) LocalAddr() net.Addr                { return c.socket.LocalAddr() }
func (c *udpConn) RemoteAddr() net.Addr               { return c.remote.Load() }
func (c *udpConn) SetDeadline(t time.Time) error      { return c.socket.SetDeadline(t) }
func (c *udpConn) SetReadDeadline(t time.Time) error  { return c.socket.SetReadDeadline(t) }
func (c *udpConn) SetWriteDeadline(t time.Time) error { return c.socket.SetWriteDeadline(t) }

// linger answers a repeated SHUTDOWN ACK, as the owner of a port has to when the association is
// gone and its SHUTDOWN COMPLETE was lost (RFC 9260 section 8.4); pion holds one association only.
func (c *udpConn) linger(patience time.Duration) {
	_ = c.socket.SetReadDeadline(time.Now().Add(patience))
	buffer := make([]byte, 2048)
	for {
		n, from, err := c.socket.ReadFromUDP(buffer)
		if err != nil {
			return
		}
		if n > commonHeader && buffer[commonHeader] == shutdownAck {
			_, _ = c.socket.WriteToUDP(completeFor(buffer[:n]), from)
		}
	}
}

// completeFor is the SHUTDOWN COMPLETE with the tag reflected and the T bit.
func completeFor(packet []byte) []byte {
	answer := make([]byte, commonHeader+4)
	copy(answer, packet[2:4])
	copy(answer[2:], packet[:2])
	copy(answer[4:], packet[4:8])
	copy(answer[commonHeader:], []byte{shutdownComplete, 1, 0, 4})
	checksum := crc32.Checksum(answer, crc32.MakeTable(crc32.Castagnoli))
	binary.LittleEndian.PutUint32(answer[8:], checksum)
	return answer
}
