// Command watchsource plays an API server with many nodes that change at a set rate, for those who list and watch them.
//
// Owns the churn benchmark's facts: a real API server and etcd would take the very cores whose stalls are measured.
// Every node has a ready builder pod. Of ten changes five are heartbeats, three toggle an image's label, one a cordon, one
// readiness. POST /rate?per_second=N sets the pace; 0 rests, with all nodes as they were at first.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

type event struct {
	Type   string `json:"type"`
	Object any    `json:"object"`
}

type source struct {
	namespace string
	images    []string // labels of pulled images

	mutex    sync.Mutex
	version  int
	nodes    []corev1.Node
	builders []corev1.Pod
	watchers map[chan []byte]bool
	rate     int
	changed  chan struct{} // the rate has changed
}

func main() {
	nodes := flag.Int("nodes", 5000, "how many")
	namespace := flag.String("namespace", "bench-ring", "of the builder pods")
	images := flag.String("images", "", "labels of pulled images, with commas; half of the nodes carry them")
	port := flag.Int("port", 0, "on 127.0.0.1")
	flag.Parse()
	served := newSource(*nodes, *namespace, strings.Split(*images, ","))
	go served.churn()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		fmt.Fprintln(os.Stderr, "watchsource:", err)
		os.Exit(1)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/nodes", served.serveNodes)
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods", served.servePods)
	mux.HandleFunc("POST /rate", served.serveRate)
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	fmt.Fprintln(os.Stderr, "watchsource:", http.Serve(listener, mux))
	os.Exit(1)
}

func newSource(count int, namespace string, images []string) *source {
	served := &source{
		namespace: namespace, images: images, version: 1, watchers: map[chan []byte]bool{}, changed: make(chan struct{}, 1),
	}
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	for i := range count {
		name := fmt.Sprintf("bench-node-%05d", i)
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1", Labels: map[string]string{
			"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "hub.jupyter.org/node-purpose": "user",
			"node.kubernetes.io/instance-type": "m-16", "topology.kubernetes.io/zone": "zone-" + strconv.Itoa(i%3),
		}}}
		if i%2 == 0 {
			for _, image := range images {
				node.Labels[image] = "true"
			}
		}
		node.Status.Capacity, node.Status.Allocatable = amounts, amounts
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
		for image := range 20 {
			node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
				Names: []string{fmt.Sprintf("quay.io/benchmark/image-%d@sha256:%064d", image, i), fmt.Sprintf("quay.io/benchmark/image-%d:1", image)}, SizeBytes: 1 << 30,
			})
		}
		served.nodes = append(served.nodes, node)
		served.builders = append(served.builders, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: "dind-" + name, Namespace: namespace, ResourceVersion: "1", Labels: map[string]string{"component": "image-builder", "app": "binder"},
			},
			Spec: corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{Name: "dind", Image: "docker:dind"}}},
			Status: corev1.PodStatus{
				Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			},
		})
	}
	return served
}

// churn changes nodes at the rate, each event to all watchers; at rest it takes back what it did.
func (s *source) churn() {
	ticker := time.NewTicker(time.Hour)
	number, touched := 0, map[int]corev1.Node{}
	for {
		select {
		case <-s.changed:
			s.mutex.Lock()
			rate := s.rate
			s.mutex.Unlock()
			if rate > 0 {
				ticker.Reset(time.Second / time.Duration(rate))
				continue
			}
			ticker.Reset(time.Hour)
			for at, before := range touched {
				s.send(at, func(node *corev1.Node) { *node = *before.DeepCopy() })
			}
			touched = map[int]corev1.Node{}
		case <-ticker.C:
			at := (number * 7919) % len(s.nodes)
			if _, ok := touched[at]; !ok {
				touched[at] = *s.nodes[at].DeepCopy()
			}
			kind := number % 10
			number++
			s.send(at, func(node *corev1.Node) { s.change(node, kind) })
		}
	}
}

func (s *source) change(node *corev1.Node, kind int) {
	switch {
	case kind < 5:
		node.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
	case kind < 8:
		image := s.images[kind%len(s.images)]
		if node.Labels[image] == "true" {
			delete(node.Labels, image)
		} else {
			node.Labels[image] = "true"
		}
	case kind == 8:
		node.Spec.Unschedulable = !node.Spec.Unschedulable
	default:
		if node.Status.Conditions[0].Status == corev1.ConditionTrue {
			node.Status.Conditions[0].Status = corev1.ConditionFalse
		} else {
			node.Status.Conditions[0].Status = corev1.ConditionTrue
		}
	}
}

func (s *source) send(at int, change func(*corev1.Node)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change(&s.nodes[at])
	s.version++
	node := s.nodes[at]
	node.ResourceVersion = strconv.Itoa(s.version)
	node.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
	line, err := json.Marshal(event{Type: "MODIFIED", Object: node})
	if err != nil {
		panic(err) // our own types always marshal
	}
	line = append(line, '\n')
	for watcher := range s.watchers {
		select {
		case watcher <- line:
		default: // a client that doesn't read: it is cut off, and lists again
			delete(s.watchers, watcher)
			close(watcher)
		}
	}
}

func (s *source) serveRate(w http.ResponseWriter, r *http.Request) {
	rate, err := strconv.Atoi(r.URL.Query().Get("per_second"))
	if err != nil || rate < 0 || rate > 10000 {
		http.Error(w, "per_second: 0 to 10000", http.StatusBadRequest)
		return
	}
	s.mutex.Lock()
	s.rate = rate
	s.mutex.Unlock()
	s.changed <- struct{}{}
}

func (s *source) serveNodes(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		s.watch(w, r, true)
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	list(w, r, "NodeList", s.version, s.nodes)
}

func (s *source) servePods(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		s.watch(w, r, false)
		return
	}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var found []corev1.Pod
	for _, pod := range s.builders {
		if selector.Matches(labels.Set(pod.Labels)) {
			found = append(found, pod)
		}
	}
	list(w, r, "PodList", 1, found)
}

// list answers a whole list, or a page of it when the client asks for pages.
func list[T any](w http.ResponseWriter, r *http.Request, kind string, version int, items []T) {
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	metadata := map[string]string{"resourceVersion": strconv.Itoa(version)}
	page := items[min(from, len(items)):]
	if limit > 0 && limit < len(page) {
		page = page[:limit]
		metadata["continue"] = strconv.Itoa(from + limit)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": kind, "apiVersion": "v1", "metadata": metadata, "items": page})
}

func (s *source) watch(w http.ResponseWriter, r *http.Request, nodes bool) {
	if r.URL.Query().Get("sendInitialEvents") != "" {
		// As servers without streaming lists say it: clients then list.
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid,
			Message: "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled", Code: http.StatusUnprocessableEntity,
		})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	events := make(chan []byte, 4096)
	if nodes {
		s.mutex.Lock()
		s.watchers[events] = true
		s.mutex.Unlock()
	}
	defer func() {
		s.mutex.Lock()
		delete(s.watchers, events)
		s.mutex.Unlock()
	}()
	for {
		select {
		case <-r.Context().Done():
			return
		case line, open := <-events:
			if !open {
				return
			}
			if _, err := w.Write(line); err != nil {
				return
			}
			_ = flush.Flush()
		}
	}
}
