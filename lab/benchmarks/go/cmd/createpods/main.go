// Command createpods creates pods through a Kubernetes API server from many clients at once, and prints what it saw as
// one JSON object.
//
// Owns the client's side of the admission benchmark. A fixed number of real creations, each client with a TLS connection
// of its own (as many hubs, not one); bodies are sent as the files hold them but for the name. The pods are deleted again,
// outside of what is timed, unless they are to be kept.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

type options struct {
	kubeconfig, namespace, prefix, mark string
	clients                             int
	count                               int64
	seconds                             float64
	keep                                bool
}

// A pod's JSON with a gap where its name goes.
type body struct{ before, after []byte }

type tally struct {
	latencies      []time.Duration
	failed, marked int64
	fault          string // the first one
}

const nameMark = "name-of-the-benchmark-pod"

func main() {
	var given options
	flag.StringVar(&given.kubeconfig, "kubeconfig", "", "file")
	flag.StringVar(&given.namespace, "namespace", "default", "where the pods go")
	flag.StringVar(&given.prefix, "prefix", "bench", "pods are called PREFIX-NUMBER")
	flag.StringVar(&given.mark, "mark", "", "count the stored pods whose JSON holds this text")
	flag.IntVar(&given.clients, "clients", 16, "clients, each with one creation at a time")
	flag.Int64Var(&given.count, "count", 1000, "pods in all")
	flag.Float64Var(&given.seconds, "seconds", 60, "end after this time, whatever the count")
	flag.BoolVar(&given.keep, "keep", false, "leave the pods")
	flag.Parse()
	result, err := run(given, flag.Args())
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "createpods:", err)
		os.Exit(1)
	}
}

func run(given options, files []string) (map[string]any, error) {
	if given.kubeconfig == "" || len(files) == 0 || given.clients < 1 {
		return nil, errors.New("usage: createpods -kubeconfig FILE [flags] POD.json ...")
	}
	bodies, err := readBodies(files)
	if err != nil {
		return nil, err
	}
	clients := make([]*kubernetes.Clientset, given.clients)
	for i := range clients {
		if clients[i], err = newClient(given.kubeconfig); err != nil {
			return nil, err
		}
		// The connection stands before the clock starts.
		if _, err := clients[i].Discovery().ServerVersion(); err != nil {
			return nil, err
		}
	}
	limit, cancel := context.WithTimeout(context.Background(), time.Duration(given.seconds*float64(time.Second)))
	defer cancel()
	var taken atomic.Int64
	tallies := make([]tally, given.clients)
	var senders sync.WaitGroup
	started := time.Now()
	for i, client := range clients {
		senders.Go(func() {
			for limit.Err() == nil {
				number := taken.Add(1) - 1
				if number >= given.count {
					return
				}
				name := fmt.Sprintf("%s-%d", given.prefix, number)
				tallies[i].create(limit, client, given, bodies[int(number)%len(bodies)].named(name))
			}
		})
	}
	senders.Wait()
	elapsed := time.Since(started)
	var all tally
	for _, one := range tallies {
		all.latencies = append(all.latencies, one.latencies...)
		all.failed += one.failed
		all.marked += one.marked
		all.fault = cmp.Or(all.fault, one.fault)
	}
	slices.Sort(all.latencies)
	if !given.keep {
		if err := deleteAll(clients[0], given.namespace); err != nil {
			return nil, err
		}
	}
	return map[string]any{
		"clients": given.clients, "pods": len(all.latencies), "failed": all.failed, "fault": all.fault, "marked": all.marked,
		"seconds": elapsed.Seconds(), "pods_per_second": float64(len(all.latencies)) / elapsed.Seconds(),
		"p50_ms": quantile(all.latencies, 0.5), "p90_ms": quantile(all.latencies, 0.9), "p99_ms": quantile(all.latencies, 0.99),
	}, nil
}

func readBodies(files []string) ([]body, error) {
	var bodies []body
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var pod map[string]any
		if err := json.Unmarshal(raw, &pod); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		metadata, ok := pod["metadata"].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: found no metadata, expected a pod", file)
		}
		metadata["name"] = nameMark
		delete(metadata, "generateName")
		delete(metadata, "namespace")
		compact, err := json.Marshal(pod)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		before, after, _ := bytes.Cut(compact, []byte(nameMark))
		bodies = append(bodies, body{before: before, after: after})
	}
	return bodies, nil
}

func (b body) named(name string) []byte {
	return slices.Concat(b.before, []byte(name), b.after)
}

func newClient(kubeconfig string) (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // no throttle of ours: the API server's pace is what is measured
	// client-go shares one HTTP/2 connection between equal configurations; a dialer of its own makes this one unequal.
	config.Dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	return kubernetes.NewForConfig(rest.AddUserAgent(config, "roost-benchmark"))
}

func (t *tally) create(limit context.Context, client *kubernetes.Clientset, given options, pod []byte) {
	begun := time.Now()
	stored, err := client.CoreV1().RESTClient().Post().Namespace(given.namespace).Resource("pods").
		SetHeader("Content-Type", "application/json").Body(pod).DoRaw(limit)
	if err != nil {
		if limit.Err() != nil {
			return
		}
		t.failed++
		t.fault = cmp.Or(t.fault, fmt.Sprintf("%v: %.300s", err, stored))
		return
	}
	t.latencies = append(t.latencies, time.Since(begun))
	if given.mark != "" && bytes.Contains(stored, []byte(given.mark)) {
		t.marked++
	}
}

func deleteAll(client *kubernetes.Clientset, namespace string) error {
	limit, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	atOnce := int64(0)
	return client.CoreV1().Pods(namespace).DeleteCollection(
		limit, metav1.DeleteOptions{GracePeriodSeconds: &atOnce}, metav1.ListOptions{})
}

// In milliseconds; the values must be sorted. 0 when there are none.
func quantile(sorted []time.Duration, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := min(len(sorted)-1, int(share*float64(len(sorted))))
	return float64(sorted[at]) / float64(time.Millisecond)
}
