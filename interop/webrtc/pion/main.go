// Command pion is pion/webrtc as a peer of the example `channels`: it offers or answers, and checks what comes back. It
// prints one line of JSON.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pion/webrtc/v4"
)

const patience = 60 * time.Second

func main() {
	count, err := strconv.Atoi(os.Args[3])
	if err == nil {
		var found map[string]bool
		if found, err = run(os.Args[1], os.Args[2], count); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(found)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func request(method, url, body string) (string, http.Header, error) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return "", nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= 300 {
		err = errors.New(string(text))
	}
	return string(text), response.Header, err
}

// gather sets the local description, and returns it with all candidates.
func gather(connection *webrtc.PeerConnection, description webrtc.SessionDescription) (string, error) {
	complete := webrtc.GatheringCompletePromise(connection)
	if err := connection.SetLocalDescription(description); err != nil {
		return "", err
	}
	<-complete
	return connection.LocalDescription().SDP, nil
}

// connect returns the path at which ICE can be restarted.
func connect(connection *webrtc.PeerConnection, site, role string) (string, error) {
	if role == "offerer" {
		offer, err := connection.CreateOffer(nil)
		if err != nil {
			return "", err
		}
		local, err := gather(connection, offer)
		if err != nil {
			return "", err
		}
		answer, header, err := request("POST", site+"/offer", local)
		if err != nil {
			return "", err
		}
		remote := webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer}
		return header.Get("Location"), connection.SetRemoteDescription(remote)
	}
	offer, header, err := request("GET", site+"/offer", "")
	if err != nil {
		return "", err
	}
	if err := connection.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}); err != nil {
		return "", err
	}
	answer, err := connection.CreateAnswer(nil)
	if err != nil {
		return "", err
	}
	local, err := gather(connection, answer)
	if err != nil {
		return "", err
	}
	location := header.Get("Location")
	_, _, err = request("POST", site+location, local)
	return strings.Replace(location, "answer", "restart", 1), err
}

// channel is a data channel and what happens to it.
type channel struct {
	*webrtc.DataChannel
	opened, closed chan struct{}
	messages       chan webrtc.DataChannelMessage
}

func open(connection *webrtc.PeerConnection, label string, ordered bool) (channel, error) {
	data, err := connection.CreateDataChannel(label, &webrtc.DataChannelInit{Ordered: &ordered})
	it := channel{data, make(chan struct{}), make(chan struct{}), make(chan webrtc.DataChannelMessage, 1024)}
	if err == nil {
		data.OnOpen(func() { close(it.opened) })
		data.OnClose(func() { close(it.closed) })
		data.OnMessage(func(message webrtc.DataChannelMessage) { it.messages <- message })
	}
	return it, err
}

func await[T any](what string, events <-chan T) (T, error) {
	select {
	case event := <-events:
		return event, nil
	case <-time.After(patience):
		var none T
		return none, errors.New(what + ": nothing happens")
	}
}

func (it channel) exchange(count int) ([]int, error) {
	go func() {
		for n := range count {
			text := fmt.Sprintf("%d ", n)
			_ = it.SendText(text + strings.Repeat(".", 100-len(text)))
			if n%10 == 9 {
				time.Sleep(10 * time.Millisecond)
			}
		}
	}()
	var received []int
	for len(received) < count {
		message, err := await("echo", it.messages)
		if err != nil {
			return nil, err
		}
		number, err := strconv.Atoi(strings.Fields(string(message.Data))[0])
		if err != nil {
			return nil, err
		}
		received = append(received, number)
	}
	return received, nil
}

// kinds reports whether each kind of message comes back as what it was.
func (it channel) kinds() (bool, error) {
	large := make([]byte, 256*1024)
	for n := range large {
		large[n] = byte(n * 7)
	}
	for _, text := range []string{"", "é"} {
		if err := it.SendText(text); err != nil {
			return false, err
		}
		if echo, err := await("text", it.messages); err != nil || !echo.IsString || string(echo.Data) != text {
			return false, err
		}
	}
	for _, data := range [][]byte{{}, large} {
		if err := it.Send(data); err != nil {
			return false, err
		}
		if echo, err := await("binary", it.messages); err != nil || echo.IsString || !bytes.Equal(echo.Data, data) {
			return false, err
		}
	}
	return true, nil
}

// channels reports whether each of many channels opens, and has its own echo.
func channels(connection *webrtc.PeerConnection) (bool, error) {
	var all []channel
	for n := range 100 {
		it, err := open(connection, fmt.Sprintf("channel %d", n), true)
		if err != nil {
			return false, err
		}
		all = append(all, it)
	}
	for n, it := range all {
		if _, err := await("open", it.opened); err != nil {
			return false, err
		}
		if err := it.SendText(strconv.Itoa(n)); err != nil {
			return false, err
		}
	}
	for n, it := range all {
		echo, err := await("echo of a channel", it.messages)
		if err != nil || string(echo.Data) != strconv.Itoa(n) {
			return false, err
		}
	}
	return true, nil
}

// restart restarts ICE, by this side or by the server at url, and waits until the server has a new pair.
func restart(connection *webrtc.PeerConnection, restarts channel, role, url string) error {
	if role == "offerer" {
		offer, err := connection.CreateOffer(&webrtc.OfferOptions{ICERestart: true})
		if err != nil {
			return err
		}
		local, err := gather(connection, offer)
		if err != nil {
			return err
		}
		answer, _, err := request("POST", url, local)
		if err != nil {
			return err
		}
		remote := webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer}
		if err := connection.SetRemoteDescription(remote); err != nil {
			return err
		}
	} else {
		offer, _, err := request("GET", url, "")
		if err != nil {
			return err
		}
		remote := webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}
		if err := connection.SetRemoteDescription(remote); err != nil {
			return err
		}
		answer, err := connection.CreateAnswer(nil)
		if err != nil {
			return err
		}
		local, err := gather(connection, answer)
		if err != nil {
			return err
		}
		if _, _, err := request("POST", url+"/answer", local); err != nil {
			return err
		}
	}
	_, err := await("restarted", restarts.messages)
	return err
}

func run(site, role string, count int) (map[string]bool, error) {
	connection, err := webrtc.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return nil, err
	}
	ordered, err := open(connection, "ordered", true)
	if err != nil {
		return nil, err
	}
	unordered, err := open(connection, "unordered", false)
	if err != nil {
		return nil, err
	}
	restarts, err := open(connection, "restarts", true)
	if err != nil {
		return nil, err
	}
	location, err := connect(connection, site, role)
	if err != nil {
		return nil, err
	}
	for _, it := range []channel{ordered, unordered, restarts} {
		if _, err := await("open", it.opened); err != nil {
			return nil, err
		}
	}
	first, err := ordered.exchange(count)
	if err != nil {
		return nil, err
	}
	restarted := make(chan error, 1)
	go func() { restarted <- restart(connection, restarts, role, site+location) }()
	second, err := unordered.exchange(count)
	if err != nil {
		return nil, err
	}
	if err := <-restarted; err != nil {
		return nil, err
	}
	found := map[string]bool{"ordered": slices.IsSorted(first), "restart": true}
	slices.Sort(second)
	found["unordered"] = len(slices.Compact(second)) == count
	if found["kinds"], err = ordered.kinds(); err != nil {
		return nil, err
	}
	if found["channels"], err = channels(connection); err != nil {
		return nil, err
	}
	if err := unordered.SendText("close"); err != nil {
		return nil, err
	}
	if _, err := await("close", unordered.closed); err != nil {
		return nil, err
	}
	if err := ordered.Close(); err != nil {
		return nil, err
	}
	_, err = await("close", ordered.closed)
	found["closing"] = err == nil
	return found, errors.Join(err, connection.Close())
}
