// Command pion is pion/sctp as a peer: one association over UDP, the workload of interop/README.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/pion/logging"
	"github.com/pion/sctp"
)

// Bytes that may wait in the association before it gets the next message.
const queueLimit = 64 * 1024

type options struct {
	isClient          bool
	local, remote     *net.UDPAddr
	messages          uint32
	seed              uint64
	sends, receives   bool
	streams, sctpPort uint16
	timeout, linger   time.Duration
}

type report struct {
	Implementation string `json:"implementation"`
	Role           string `json:"role"`
	Sent           uint32 `json:"sent"`
	counts
	Graceful bool    `json:"graceful_shutdown"`
	Seconds  float64 `json:"seconds"`
	Error    string  `json:"error,omitempty"`
}

type peer struct {
	options  options
	conn     *udpConn
	outgoing *plan
	verifier *verifier
	sent     atomic.Uint32
	started  time.Time
}

func main() {
	options, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	p, err := newPeer(options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	time.AfterFunc(options.timeout, func() { os.Exit(p.report(errors.New("timeout"))) })
	err = p.run()
	code := p.report(err)
	if options.isClient && p.conn.hasShutdownComplete.Load() {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(code)
		}()
		p.conn.linger(options.linger)
	}
	os.Exit(code)
}

func newPeer(o options) (*peer, error) {
	remote := o.remote
	if !o.isClient {
		remote = nil // learned from what arrives
	}
	conn, err := newUDPConn(o.local, remote)
	if err != nil {
		return nil, err
	}
	own, other := serverToClient, clientToServer
	if o.isClient {
		own, other = other, own
	}
	var out, in uint32
	if o.sends {
		out = o.messages
	}
	if o.receives {
		in = o.messages
	}
	return &peer{
		options:  o,
		conn:     conn,
		outgoing: newPlan(o.seed, own, out, o.streams),
		verifier: newVerifier(newPlan(o.seed, other, in, o.streams), o.streams),
		started:  time.Now(),
	}, nil
}

func (p *peer) run() error {
	association, err := p.associate()
	if err != nil {
		return err
	}
	streams, readers, err := p.openStreams(association)
	if err != nil {
		return err
	}
	sending := make(chan error, 1)
	go func() { sending <- p.send(streams) }()
	if p.options.isClient {
		err = p.shutDownWhenDone(association, streams, sending, readers)
	}
	for range streams {
		<-readers // ends with the association
	}
	return err
}

func (p *peer) associate() (*sctp.Association, error) {
	// Its defaults but for the size; zero checksums would have to be asked for. The port is fixed
	// to 5000 in pion.
	config := sctp.Config{
		NetConn:        p.conn,
		LoggerFactory:  logging.NewDefaultLoggerFactory(),
		MaxMessageSize: largestMessage,
	}
	if p.options.isClient {
		return sctp.Client(config)
	}
	return sctp.Server(config)
}

// openStreams opens all streams at both ends alike, and reads each until it ends.
func (p *peer) openStreams(a *sctp.Association) ([]*sctp.Stream, <-chan struct{}, error) {
	go func() {
		for { // Only to keep the queue empty: those it holds are opened here as well.
			if _, err := a.AcceptStream(); err != nil {
				return
			}
		}
	}()
	ended := make(chan struct{}, p.options.streams)
	var streams []*sctp.Stream
	for id := uint16(0); id < p.options.streams; id++ {
		stream, err := a.OpenStream(id, ppid)
		if err != nil {
			return nil, nil, err
		}
		streams = append(streams, stream)
		go func() {
			buffer := make([]byte, 2*largestMessage)
			for {
				n, err := stream.Read(buffer)
				if err != nil {
					ended <- struct{}{}
					return
				}
				p.verifier.onDelivery(id, buffer[:n])
			}
		}()
	}
	return streams, ended, nil
}

func queued(streams []*sctp.Stream) (bytes uint64) {
	for _, stream := range streams {
		bytes += stream.BufferedAmount()
	}
	return bytes
}

func (p *peer) send(streams []*sctp.Stream) error {
	var payload []byte
	for number, m := range p.outgoing.messages {
		for queued(streams) >= queueLimit {
			time.Sleep(500 * time.Microsecond)
		}
		payload = p.outgoing.payload(uint32(number), payload)
		stream := streams[m.stream]
		stream.SetReliabilityParams(m.sequence == unordered, sctp.ReliabilityTypeReliable, 0)
		if _, err := stream.WriteSCTP(payload, ppid); err != nil {
			return err
		}
		p.sent.Add(1)
	}
	return nil
}

func (p *peer) shutDownWhenDone(
	a *sctp.Association, streams []*sctp.Stream, sending <-chan error, readers <-chan struct{},
) error {
	if err := <-sending; err != nil {
		return err
	}
	<-p.verifier.complete
	for queued(streams) > 0 {
		time.Sleep(500 * time.Microsecond)
	}
	return a.Shutdown(context.Background())
}

func (p *peer) report(err error) int {
	r := report{
		Implementation: "pion",
		Role:           "server",
		Sent:           p.sent.Load(),
		counts:         p.verifier.seen(),
		Graceful:       p.conn.hasShutdownComplete.Load() && !p.conn.hasAbort.Load(),
		Seconds:        float64(time.Since(p.started).Milliseconds()) / 1000,
	}
	if p.options.isClient {
		r.Role = "client"
	}
	if err != nil {
		r.Error = err.Error()
	}
	line, _ := json.Marshal(r)
	fmt.Println(string(line))
	if err != nil || !r.isClean() || !r.Graceful {
		return 1
	}
	return 0
}

func parse(arguments []string) (o options, err error) {
	flags := flag.NewFlagSet("peer-pion", flag.ExitOnError)
	role := flags.String("role", "", "client or server")
	local := flags.String("local", "", "UDP address to bind")
	remote := flags.String("remote", "", "UDP address to send to (client)")
	messages := flags.Uint("messages", 500, "messages in each direction")
	flags.Uint64Var(&o.seed, "seed", 1, "what they are made from")
	mode := flags.String("mode", "both", "both, send or recv")
	streams := flags.Uint("streams", 8, "streams in each direction")
	sctpPort := flags.Uint("sctp-port", 5000, "SCTP port of both ends; pion knows only 5000")
	timeout := flags.Uint("timeout", 60, "seconds after which to give up")
	linger := flags.Uint("linger", 5, "seconds a client stays to answer late packets")
	_ = flags.Parse(arguments)

	o.isClient = *role == "client"
	o.messages, o.streams, o.sctpPort = uint32(*messages), uint16(*streams), uint16(*sctpPort)
	o.sends, o.receives = *mode != "recv", *mode != "send"
	o.timeout = time.Duration(*timeout) * time.Second
	o.linger = time.Duration(*linger) * time.Second
	switch {
	case !o.isClient && *role != "server":
		return o, errors.New("--role is client or server")
	case o.sends && o.receives && *mode != "both":
		return o, errors.New("--mode is both, send or recv")
	case *streams == 0 || *streams > 65535 || *messages >= 1<<31:
		return o, errors.New("--streams or --messages is out of range")
	case o.sctpPort != 5000:
		return o, errors.New("--sctp-port: pion's association has port 5000, no other")
	}
	if o.local, err = net.ResolveUDPAddr("udp", *local); err != nil {
		return o, err
	}
	if o.isClient {
		o.remote, err = net.ResolveUDPAddr("udp", *remote)
	}
	return o, err
}
