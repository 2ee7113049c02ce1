package rules

import (
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/blake2b"
)

// Rankings of more keys than this are forgotten, all at once: a hub has some hundred repositories at work.
const mostRankings = 4096

// ranking remembers the order of the ring's nodes for a key while the ring stays the same.
type ranking struct {
	mutex      sync.Mutex
	generation uint64
	orders     map[string][]string
}

// order gives the nodes from the best home for the key to the worst: descending blake2b of "key-node", as BinderHub does.
func (r *ranking) order(key string, nodes []string, generation uint64) []string {
	r.mutex.Lock()
	if r.orders == nil || r.generation != generation || len(r.orders) >= mostRankings {
		r.orders, r.generation = map[string][]string{}, generation
	}
	known, ok := r.orders[key]
	r.mutex.Unlock()
	if ok {
		return known
	}
	order := rank(key, nodes)
	r.mutex.Lock()
	if r.generation == generation {
		r.orders[key] = order
	}
	r.mutex.Unlock()
	return order
}

func rank(key string, nodes []string) []string {
	type scored struct {
		weight string
		node   string
	}
	hasher, err := blake2b.New(8, nil)
	if err != nil {
		panic(err) // 8 is a size that blake2b has
	}
	scores := make([]scored, 0, len(nodes))
	var sum [8]byte
	for _, node := range nodes {
		hasher.Reset()
		_, _ = hasher.Write([]byte(key))
		_, _ = hasher.Write([]byte("-"))
		_, _ = hasher.Write([]byte(node))
		scores = append(scores, scored{string(hasher.Sum(sum[:0])), node})
	}
	slices.SortFunc(scores, func(a, b scored) int {
		if order := strings.Compare(b.weight, a.weight); order != 0 {
			return order
		}
		return strings.Compare(b.node, a.node)
	})
	ordered := make([]string, 0, len(scores))
	for _, one := range scores {
		ordered = append(ordered, one.node)
	}
	return ordered
}
