// Command pion is a server of snapshots by pion/webrtc: reads offers, a line of JSON each, and prints the answers.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/pion/webrtc/v4"
)

const interval = 50 * time.Millisecond

func nowMs() float64 {
	return float64(time.Now().UnixNano()) / 1e6
}

func answer(offer string) (string, error) {
	connection, err := webrtc.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return "", err
	}
	connection.OnDataChannel(func(channel *webrtc.DataChannel) {
		channel.OnOpen(func() {
			for n := range time.NewTicker(interval).C {
				if channel.SendText(fmt.Sprintf(`{"n":%d,"t":%.2f,"balls":[]}`, n.UnixMilli(), nowMs())) != nil {
					return
				}
			}
		})
		channel.OnMessage(func(message webrtc.DataChannelMessage) {
			if _, err := strconv.ParseFloat(string(message.Data), 64); err == nil {
				_ = channel.SendText(fmt.Sprintf(`{"asked":%s,"t":%.2f}`, message.Data, nowMs()))
			}
		})
	})
	remote := webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}
	if err := connection.SetRemoteDescription(remote); err != nil {
		return "", err
	}
	local, err := connection.CreateAnswer(nil)
	if err != nil {
		return "", err
	}
	complete := webrtc.GatheringCompletePromise(connection)
	if err := connection.SetLocalDescription(local); err != nil {
		return "", err
	}
	<-complete
	return connection.LocalDescription().SDP, nil
}

func main() {
	offers, answers := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for {
		var offer string
		if offers.Decode(&offer) != nil {
			return
		}
		text, err := answer(offer)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		_ = answers.Encode(text)
	}
}
