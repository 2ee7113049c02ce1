// Package facts keeps what the rules may know of the cluster: nodes, and which of them hold builder pods.
//
// Owns the informers and their indexes. A reader never calls the API, and gets shared objects that it must not change.
package facts

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"roost.invalid/benchmarks/internal/policy"
)

// How long the informers may take for their first lists.
const firstListPatience = 30 * time.Second

const pulledIndex = "pulled"

// Facts answers the questions of the rules; safe from any goroutine.
type Facts struct {
	nodes  cache.Indexer
	pulled string // prefix of this hub's node labels for images

	mutex sync.RWMutex
	homes map[string]*home // by class
}

type home struct {
	builders   map[string]string // pod key -> node, Ready ones only
	ring       []string          // sorted; nil: to be computed
	generation uint64            // counts the changes of the ring

	withoutBuilders bool
}

func empty(document *policy.Document) *Facts {
	facts := &Facts{
		pulled: fmt.Sprintf("images-pulled.%s.%s.%s/", document.Release, document.Namespace, policy.Domain),
		homes:  map[string]*home{},
	}
	facts.nodes = cache.NewIndexer(cache.MetaNamespaceKeyFunc, facts.indexers())
	for name, class := range document.PodClasses {
		if class.Home != nil {
			facts.homes[name] = &home{builders: map[string]string{}}
		}
	}
	return facts
}

func (f *Facts) indexers() cache.Indexers {
	return cache.Indexers{pulledIndex: func(object any) ([]string, error) {
		var held []string
		for label, value := range object.(*corev1.Node).Labels {
			if value == "true" && strings.HasPrefix(label, f.pulled) {
				held = append(held, label)
			}
		}
		return held, nil
	}}
}

// FromFile gives facts that never change: {"nodes": [Node], "pods": [Pod]}.
func FromFile(document *policy.Document, file string) (*Facts, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var given struct {
		Nodes []*corev1.Node `json:"nodes"`
		Pods  []*corev1.Pod  `json:"pods"`
	}
	if err := json.Unmarshal(raw, &given); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	facts := empty(document)
	for _, node := range given.Nodes {
		if err := facts.nodes.Add(node); err != nil {
			return nil, err
		}
	}
	for name, class := range document.PodClasses {
		if class.Home == nil {
			continue
		}
		for _, pod := range given.Pods {
			if labels.SelectorFromSet(class.Home.Builders.Labels).Matches(labels.Set(pod.Labels)) {
				facts.setBuilder(name, pod)
			}
		}
	}
	return facts, nil
}

// Watch starts informers and returns once each has its first list.
func Watch(ctx context.Context, client kubernetes.Interface, document *policy.Document) (*Facts, error) {
	facts := empty(document)
	cluster := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(dropManagedFields))
	nodes := cluster.Core().V1().Nodes().Informer()
	if err := nodes.AddIndexers(facts.indexers()); err != nil {
		return nil, err
	}
	facts.nodes = nodes.GetIndexer()
	synced := []cache.InformerSynced{nodes.HasSynced}
	if _, err := nodes.AddEventHandler(facts.ringChanges()); err != nil {
		return nil, err
	}
	cluster.Start(ctx.Done())
	for name, class := range document.PodClasses {
		if class.Home == nil {
			continue
		}
		pods := informers.NewSharedInformerFactoryWithOptions(client, 0,
			informers.WithNamespace(document.Namespace), informers.WithTransform(dropManagedFields),
			informers.WithTweakListOptions(func(options *metav1.ListOptions) {
				options.LabelSelector = labels.SelectorFromSet(class.Home.Builders.Labels).String()
			}))
		registration, err := pods.Core().V1().Pods().Informer().AddEventHandler(facts.builderHandler(name))
		if err != nil {
			return nil, err
		}
		synced = append(synced, registration.HasSynced)
		pods.Start(ctx.Done())
	}
	limit, cancel := context.WithTimeout(ctx, firstListPatience)
	defer cancel()
	if !cache.WaitForCacheSync(limit.Done(), synced...) {
		return nil, fmt.Errorf("the informers' first lists did not come: %w", context.Cause(limit))
	}
	return facts, nil
}

func dropManagedFields(object any) (any, error) {
	if accessor, ok := object.(metav1.Object); ok {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

func (f *Facts) builderHandler(class string) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { f.setBuilder(class, object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { f.setBuilder(class, object.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if pod, ok := object.(*corev1.Pod); ok {
				gone := pod.DeepCopy()
				gone.Spec.NodeName = "" // it serves no more
				f.setBuilder(class, gone)
			}
		},
	}
}

// Only readiness and cordons move the ring; heartbeats don't.
func (f *Facts) ringChanges() cache.ResourceEventHandler {
	forget := func() {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		for _, home := range f.homes {
			home.forgetRing()
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { forget() },
		UpdateFunc: func(before, after any) {
			if usable(before.(*corev1.Node)) != usable(after.(*corev1.Node)) {
				forget()
			}
		},
		DeleteFunc: func(any) { forget() },
	}
}

func (h *home) forgetRing() {
	h.ring = nil
	h.generation++
}

func (f *Facts) setBuilder(class string, pod *corev1.Pod) {
	node := ""
	if podIsReady(pod) && pod.DeletionTimestamp == nil {
		node = pod.Spec.NodeName
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	home, key := f.homes[class], pod.Namespace+"/"+pod.Name
	if home.builders[key] == node {
		return
	}
	if node == "" {
		delete(home.builders, key)
	} else {
		home.builders[key] = node
	}
	home.forgetRing()
}

// Ring gives the nodes that may be a home, sorted, and a number that changes whenever they do. While no builder is ready,
// all usable nodes are the ring, and the last value is true.
func (f *Facts) Ring(class string) ([]string, uint64, bool) {
	f.mutex.RLock()
	home := f.homes[class]
	ring, generation, without := home.ring, home.generation, home.withoutBuilders
	f.mutex.RUnlock()
	if ring != nil {
		return ring, generation, without
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	ring = []string{}
	for _, name := range home.builders {
		if node := f.Node(name); node != nil && usable(node) {
			ring = append(ring, name)
		}
	}
	home.withoutBuilders = len(ring) == 0
	if home.withoutBuilders {
		for _, object := range f.nodes.List() {
			if node := object.(*corev1.Node); usable(node) {
				ring = append(ring, node.Name)
			}
		}
	}
	slices.Sort(ring)
	home.ring = slices.Compact(ring)
	return home.ring, home.generation, home.withoutBuilders
}

// Node gives one node; nil when it is unknown.
func (f *Facts) Node(name string) *corev1.Node {
	if object, ok, _ := f.nodes.GetByKey(name); ok {
		return object.(*corev1.Node)
	}
	return nil
}

// Holders gives the nodes that carry a label of a pulled image.
func (f *Facts) Holders(label string) []*corev1.Node {
	objects, err := f.nodes.ByIndex(pulledIndex, label)
	if err != nil {
		return nil
	}
	nodes := make([]*corev1.Node, 0, len(objects))
	for _, object := range objects {
		nodes = append(nodes, object.(*corev1.Node))
	}
	return nodes
}

func usable(node *corev1.Node) bool {
	return !node.Spec.Unschedulable && node.DeletionTimestamp == nil && IsReady(node)
}

// IsReady tells whether the node's kubelet says so.
func IsReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}

func podIsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}
