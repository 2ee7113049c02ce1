// Command load posts AdmissionReviews to a webhook as kube-apiserver does, and prints what it saw as one JSON object.
//
// Owns the client's side of the direct benchmarks: HTTP/1.1 only, TLS, connections kept alive, a fresh request.uid
// each time (no server may answer from memory), every answer checked. A run ends after -count reviews or after
// -seconds, whichever comes first. With -rate it sends at that pace (open loop) and times from the moment a review
// was due, so a stall is not hidden by the waiting of its sender.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

type options struct {
	url, caFile   string
	connections   int
	count, warmup int64
	seconds, rate float64
}

// A review whose uid can be written over in a copy of its bytes.
type review struct {
	body  []byte
	uidAt int
}

type tally struct {
	latencies       []time.Duration
	patched, failed int64
	answerBytes     int64
	fault           string // the first one
}

type answer struct {
	Response struct {
		UID     string `json:"uid"`
		Allowed bool   `json:"allowed"`
		Patch   []byte `json:"patch"`
	} `json:"response"`
}

const uidLength = 36

func main() {
	var given options
	flag.StringVar(&given.url, "url", "", "webhook, such as https://127.0.0.1:8443/mutate")
	flag.StringVar(&given.caFile, "ca", "", "PEM file of the CA that signed the server's certificate")
	flag.IntVar(&given.connections, "connections", 16, "connections, each with one review at a time")
	flag.Int64Var(&given.count, "count", 10000, "reviews in all, after the warm-up")
	flag.Int64Var(&given.warmup, "warmup", 500, "reviews before the measurement")
	flag.Float64Var(&given.seconds, "seconds", 30, "end after this time, whatever the count")
	flag.Float64Var(&given.rate, "rate", 0, "reviews a second; 0: as fast as answers come")
	flag.Parse()
	result, err := run(given, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(given options, files []string) (map[string]any, error) {
	if given.url == "" || given.caFile == "" || len(files) == 0 || given.connections < 1 {
		return nil, errors.New("usage: load -url URL -ca FILE [flags] REVIEW.json ...")
	}
	reviews, err := readReviews(files)
	if err != nil {
		return nil, err
	}
	client, err := newClient(given)
	if err != nil {
		return nil, err
	}
	if given.warmup > 0 {
		if warm, _ := measure(client, given, reviews, given.warmup, 0); warm.failed > 0 {
			return nil, fmt.Errorf("warm-up: %d reviews failed, the first with: %s", warm.failed, warm.fault)
		}
	}
	seen, elapsed := measure(client, given, reviews, given.count, given.rate)
	slices.Sort(seen.latencies)
	return map[string]any{
		"connections": given.connections, "reviews": len(seen.latencies), "failed": seen.failed, "patched": seen.patched,
		"fault": seen.fault, "seconds": elapsed.Seconds(), "rps": float64(len(seen.latencies)) / elapsed.Seconds(),
		"p50_ms": quantile(seen.latencies, 0.5), "p90_ms": quantile(seen.latencies, 0.9),
		"p99_ms": quantile(seen.latencies, 0.99), "max_ms": quantile(seen.latencies, 1),
		"answer_bytes": seen.answerBytes / max(1, int64(len(seen.latencies))),
	}, nil
}

func readReviews(files []string) ([]review, error) {
	var reviews []review
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var head struct {
			Request struct {
				UID string `json:"uid"`
			} `json:"request"`
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		// The API server sends compact JSON; files are pretty.
		var compact bytes.Buffer
		if err := json.Compact(&compact, raw); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		at := bytes.Index(compact.Bytes(), []byte(head.Request.UID))
		if len(head.Request.UID) != uidLength || at < 0 {
			return nil, fmt.Errorf("%s: found request.uid %q, expected a UUID of %d characters", file, head.Request.UID, uidLength)
		}
		reviews = append(reviews, review{body: compact.Bytes(), uidAt: at})
	}
	return reviews, nil
}

// As client-go builds it for a webhook: HTTP/1.1 by NextProtos, idle connections dropped after 90 s. The API server keeps
// 25 idle ones; here as many as there are senders, since connections are what is varied.
func newClient(given options) (*http.Client, error) {
	pem, err := os.ReadFile(given.caFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate found", given.caFile)
	}
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: roots, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12},
		DialContext:         (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		MaxIdleConnsPerHost: given.connections,
		MaxConnsPerHost:     given.connections,
	}
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}, nil
}

func measure(client *http.Client, given options, reviews []review, count int64, rate float64) (tally, time.Duration) {
	deadline, cancel := context.WithTimeout(context.Background(), time.Duration(given.seconds*float64(time.Second)))
	defer cancel()
	var taken atomic.Int64
	tallies := make([]tally, given.connections)
	var senders sync.WaitGroup
	started := time.Now()
	for sender := range tallies {
		senders.Go(func() {
			mine := &tallies[sender]
			var scratch []byte
			for deadline.Err() == nil {
				number := taken.Add(1) - 1
				if number >= count {
					return
				}
				begun := time.Now()
				if rate > 0 {
					begun = started.Add(time.Duration(float64(number) / rate * float64(time.Second)))
					time.Sleep(time.Until(begun))
				}
				chosen := reviews[int(number)%len(reviews)]
				scratch = append(scratch[:0], chosen.body...)
				uid := freshUID()
				copy(scratch[chosen.uidAt:], uid)
				mine.post(client, given.url, scratch, uid, begun, number%64 == 0)
			}
		})
	}
	senders.Wait()
	elapsed := time.Since(started)
	var all tally
	for _, one := range tallies {
		all.latencies = append(all.latencies, one.latencies...)
		all.patched += one.patched
		all.failed += one.failed
		all.answerBytes += one.answerBytes
		all.fault = cmp.Or(all.fault, one.fault)
	}
	return all, elapsed
}

// Send one review and check the answer; `whole` also parses it (too dear to do for each: the client has one core).
func (t *tally) post(client *http.Client, url string, body []byte, uid string, begun time.Time, whole bool) {
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.fail(err.Error())
		return
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, */*")
	request.Header.Set("User-Agent", "kube-apiserver-admission")
	response, err := client.Do(request)
	if err != nil {
		t.fail(err.Error())
		return
	}
	text, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	t.latencies = append(t.latencies, time.Since(begun))
	t.answerBytes += int64(len(text))
	switch {
	case err != nil:
		t.fail(err.Error())
	case response.StatusCode != http.StatusOK:
		t.fail(fmt.Sprintf("status %d: %.200s", response.StatusCode, text))
	case !bytes.Contains(text, []byte(uid)):
		t.fail(fmt.Sprintf("the answer lacks the uid %s: %.200s", uid, text))
	default:
		if bytes.Contains(text, []byte(`"patch"`)) {
			t.patched++
		}
		if whole {
			t.check(text, uid)
		}
	}
}

func (t *tally) check(text []byte, uid string) {
	var got answer
	if err := json.Unmarshal(text, &got); err != nil {
		t.fail(err.Error())
		return
	}
	var patch []any
	if !got.Response.Allowed || got.Response.UID != uid {
		t.fail(fmt.Sprintf("found allowed %v, uid %s: %.200s", got.Response.Allowed, got.Response.UID, text))
	} else if len(got.Response.Patch) > 0 && json.Unmarshal(got.Response.Patch, &patch) != nil {
		t.fail(fmt.Sprintf("the patch is no JSON list: %.200s", got.Response.Patch))
	}
}

func (t *tally) fail(fault string) {
	t.failed++
	t.fault = cmp.Or(t.fault, fault)
}

func freshUID() string {
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", rand.Uint32(), rand.Uint32N(1<<16), rand.Uint32N(1<<12),
		rand.Uint32N(1<<12), rand.Uint64N(1<<48))
}

// In milliseconds; the values must be sorted. 0 when there are none.
func quantile(sorted []time.Duration, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := min(len(sorted)-1, int(share*float64(len(sorted))))
	return float64(sorted[at]) / float64(time.Millisecond)
}
