// What runs inside the pods of real test nodes: one static file, so that an image needs nothing else.
//
//	in-pod pause              wait for SIGTERM (the default; also what a pod's sandbox runs)
//	in-pod true | false       end at once, well or badly
//	in-pod sleep SECONDS      end after a while
//	in-pod copy TARGET        put this file there (an init container hands it to containers of images without files)
//	in-pod serve ADDRESS      answer every HTTP request with 200 until SIGTERM
//	in-pod read FILE...       fail unless each can be read
//
// As a CNI plugin (CNI_COMMAND is set) it gives a pod an address that leads nowhere: pods have a namespace with a
// loopback device, which is all that placement needs of a network.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func main() {
	if command := os.Getenv("CNI_COMMAND"); command != "" {
		fail(plugin(command))
		return
	}
	arguments := os.Args[1:]
	if len(arguments) == 0 {
		arguments = []string{"pause"}
	}
	rest := arguments[1:]
	switch arguments[0] {
	case "pause":
		wait()
	case "true":
	case "false":
		os.Exit(1)
	case "sleep":
		seconds, err := strconv.ParseFloat(rest[0], 64)
		fail(err)
		go func() {
			time.Sleep(time.Duration(seconds * float64(time.Second)))
			os.Exit(0)
		}()
		wait()
	case "copy":
		fail(copyTo(rest[0]))
	case "serve":
		go wait()
		fail(http.ListenAndServe(rest[0], http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {})))
	case "read":
		for _, path := range rest {
			_, err := os.ReadFile(path)
			fail(err)
		}
	default:
		fail(fmt.Errorf("found %q, expected pause, true, false, sleep, copy, serve or read", arguments[0]))
	}
}

// wait ends the program on SIGTERM. As process 1 of a pod it also reaps what others leave behind.
func wait() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			os.Exit(0)
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}

func copyTo(target string) error {
	own, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer own.Close()
	made, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(made, own); err != nil {
		return err
	}
	return made.Close()
}

func plugin(command string) error {
	var given struct {
		Version string `json:"cniVersion"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil && command != "VERSION" {
		return err
	}
	answer := map[string]any{"cniVersion": given.Version}
	switch command {
	case "VERSION":
		answer = map[string]any{"cniVersion": "1.0.0", "supportedVersions": []string{"0.4.0", "1.0.0"}}
	case "ADD":
		// From 198.18.0.0/15, which no network uses (RFC 2544).
		hash := sha256.Sum256([]byte(os.Getenv("CNI_CONTAINERID")))
		address := fmt.Sprintf("198.%d.%d.%d/32", 18+hash[0]%2, hash[1], hash[2])
		answer["interfaces"] = []any{map[string]any{"name": os.Getenv("CNI_IFNAME"), "sandbox": os.Getenv("CNI_NETNS")}}
		answer["ips"] = []any{map[string]any{"address": address, "interface": 0}}
	default:
		return nil
	}
	return json.NewEncoder(os.Stdout).Encode(answer)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
