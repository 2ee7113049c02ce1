// Package policy reads the policy document that Roost's chart renders (release.json), so that both webhooks follow one file.
// Of its keys it reads those that lab/benchmarks/values.yaml sets or leaves on.
//
// Owns its Go types and what is derived from it once: names, labels, the set of images that the puller manages.
package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels and annotations, as Roost's roost_core/placement/labels.py spells them.
const (
	Domain             = "hub.jupyter.org"
	RevisionAnnotation = "roost.hub.jupyter.org/policy-revision"
	OptOutAnnotation   = "roost.hub.jupyter.org/opt-out"
	TargetAnnotation   = "roost.hub.jupyter.org/home-target"
	SetLabel           = "roost.hub.jupyter.org/placeholder-set"
)

// Document is release.json.
type Document struct {
	Version    int              `json:"version"`
	Release    string           `json:"release"`
	Namespace  string           `json:"namespace"`
	PodClasses map[string]Class `json:"podClasses"`
	ImageGate  struct {
		Pullers []struct {
			Images []string `json:"images"`
		} `json:"pullers"`
	} `json:"imageGate"`
	Placeholders []struct {
		Name string `json:"name"`
	} `json:"placeholders"`
	Scheduler struct {
		Profiles map[string]struct {
			Strategy string `json:"strategy"`
		} `json:"profiles"`
	} `json:"scheduler"`

	// Derived.
	Revision string            `json:"-"` // first 12 hex digits of the document's SHA-256
	Pulled   map[string]string `json:"-"` // normalised reference of each managed image -> its node label
}

// Class is one entry of podClasses.
type Class struct {
	Match struct {
		Labels map[string]string `json:"labels"`
	} `json:"match"`
	Profile            string                           `json:"profile"`
	ImageGate          bool                             `json:"imageGate"`
	Join               map[string]int32                 `json:"join"`
	Avoid              map[string]int32                 `json:"avoid"`
	PreferredNodeTerms []corev1.PreferredSchedulingTerm `json:"preferredNodeTerms"`
	Home               *Home                            `json:"home"`
	Resources          map[corev1.ResourceName]any      `json:"resources"`

	// Derived.
	Name          string `json:"-"`
	SchedulerName string `json:"-"`
	// For pods with terms of their own about pods or spreading; "" where the profile doesn't pack.
	StrictSchedulerName string                           `json:"-"`
	Requests            corev1.ResourceList              `json:"-"`
	Neighbours          []corev1.WeightedPodAffinityTerm `json:"-"` // of join
	Strangers           []corev1.WeightedPodAffinityTerm `json:"-"` // of avoid
}

// Home is the ring's settings of a class.
type Home struct {
	Key []struct {
		Annotation string `json:"annotation"`
	} `json:"key"`
	Builders struct {
		Labels map[string]string `json:"labels"`
	} `json:"builders"`
	Weights []int32 `json:"weights"`
}

// Load reads a document and derives what is needed for each pod.
func Load(file string) (*Document, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var document Document
	if err := json.Unmarshal(raw, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	digest := sha256.Sum256(raw)
	document.Revision = hex.EncodeToString(digest[:])[:12]
	for _, name := range slices.Sorted(maps.Keys(document.PodClasses)) {
		class := document.PodClasses[name]
		if err := document.derive(name, &class); err != nil {
			return nil, fmt.Errorf("%s: podClasses.%s: %w", file, name, err)
		}
		document.PodClasses[name] = class
	}
	document.Pulled = document.managedImages()
	return &document, nil
}

func (d *Document) derive(name string, class *Class) error {
	class.Name = name
	class.SchedulerName = shorten(d.Release+"."+d.Namespace+"."+class.Profile, 63)
	if d.Scheduler.Profiles[class.Profile].Strategy == "pack" {
		class.StrictSchedulerName = shorten(d.Release+"."+d.Namespace+"."+class.Profile+"_strict", 63)
	}
	class.Requests = corev1.ResourceList{}
	for resourceName, amount := range class.Resources {
		quantity, err := resource.ParseQuantity(fmt.Sprint(amount))
		if err != nil {
			return fmt.Errorf("resources.%s: %w", resourceName, err)
		}
		class.Requests[resourceName] = quantity
	}
	class.Neighbours = d.terms(class, class.Join)
	class.Strangers = d.terms(class, class.Avoid)
	return nil
}

func (d *Document) terms(class *Class, points map[string]int32) []corev1.WeightedPodAffinityTerm {
	var terms []corev1.WeightedPodAffinityTerm
	for _, other := range slices.Sorted(maps.Keys(points)) {
		target, ok := d.PodClasses[other]
		if !ok || points[other] == 0 {
			continue
		}
		terms = append(terms, corev1.WeightedPodAffinityTerm{
			Weight: points[other],
			PodAffinityTerm: corev1.PodAffinityTerm{
				LabelSelector: &metav1.LabelSelector{MatchLabels: target.Match.Labels},
				TopologyKey:   corev1.LabelHostname,
			},
		})
	}
	return terms
}

func (d *Document) managedImages() map[string]string {
	var references []string
	for _, puller := range d.ImageGate.Pullers {
		references = append(references, puller.Images...)
	}
	pulled := map[string]string{}
	for _, reference := range references {
		normalised := NormaliseReference(reference)
		pulled[normalised] = fmt.Sprintf("images-pulled.%s.%s.%s/%s-%s", d.Release, d.Namespace, Domain, shortName(normalised), hash(normalised))
	}
	return pulled
}

// AttractLabel is the node label that draws the placeholders of one set.
func (d *Document) AttractLabel(set string) string {
	return fmt.Sprintf("attract-placeholders.%s.%s.%s/%s", d.Release, d.Namespace, Domain, shorten(set, 63))
}

// NormaliseReference gives the full form of an image reference.
func NormaliseReference(reference string) string {
	repository, tag, digest := splitReference(reference)
	registry, path, hasSlash := strings.Cut(repository, "/")
	switch {
	case hasSlash && registry == "index.docker.io":
		registry = "docker.io"
	case !hasSlash || registry != "localhost" && !inRegistry.MatchString(registry):
		registry, path = "docker.io", repository
	}
	if registry == "docker.io" && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	repository = registry + "/" + path
	if digest != "" {
		return repository + "@" + digest
	}
	if tag == "" {
		tag = "latest"
	}
	return repository + ":" + tag
}

func splitReference(reference string) (repository, tag, digest string) {
	rest, digest, _ := strings.Cut(reference, "@")
	slash := strings.LastIndexByte(rest, '/') + 1
	name, tag, _ := strings.Cut(rest[slash:], ":")
	return rest[:slash] + name, tag, digest
}

var inRegistry = regexp.MustCompile(`[.:A-Z]`)

var notInLabel = regexp.MustCompile(`[^A-Za-z0-9]+`)

func shortName(normalised string) string {
	last := normalised[strings.LastIndexByte(normalised, '/')+1:]
	last, _, _ = strings.Cut(last, "@")
	name := notInLabel.ReplaceAllString(last, "-")
	name = strings.Trim(name[:min(len(name), 54)], "-")
	if name == "" {
		return "image"
	}
	return name
}

func hash(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])[:8]
}

func shorten(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	return strings.TrimRight(name[:limit-9], "-._") + "-" + hash(name)
}
