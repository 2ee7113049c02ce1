// Package rules changes a pod as Roost's webhook does under lab/benchmarks/values.yaml, written as a Go webhook would have it.
//
// Owns the rules; knows the cluster only through facts and the settings only through the policy document. Applying the
// rules twice is applying them once.
package rules

import (
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"roost.invalid/benchmarks/internal/facts"
	"roost.invalid/benchmarks/internal/policy"
)

// Engine applies one policy document.
type Engine struct {
	document *policy.Document
	facts    *facts.Facts
	classes  []policy.Class // most labels first, then by name
	rings    map[string]*ranking
}

// New makes an engine.
func New(document *policy.Document, known *facts.Facts) *Engine {
	engine := &Engine{document: document, facts: known, rings: map[string]*ranking{}}
	for name, class := range document.PodClasses {
		engine.classes = append(engine.classes, class)
		engine.rings[name] = &ranking{}
	}
	slices.SortFunc(engine.classes, func(a, b policy.Class) int {
		if order := len(b.Match.Labels) - len(a.Match.Labels); order != 0 {
			return order
		}
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return engine
}

// Apply changes the pod in place and names its class ("" when no rule is for it), and why the gate only prefers ("" when
// it requires all it could).
func (e *Engine) Apply(pod *corev1.Pod, namespace string) (name, degraded string) {
	class := e.classOf(pod, namespace)
	if class == nil || leftAlone(pod) {
		return "", ""
	}
	if isDaemon(pod) {
		// It has its node, but it counts there only by what it requests.
		defaultRequests(pod, class.Requests)
		return class.Name, ""
	}
	own := demandsOf(pod) // before any rule adds its own
	annotate(pod, policy.RevisionAnnotation, e.document.Revision)
	e.setScheduler(pod, class)
	if class.ImageGate {
		degraded = e.gate(pod, own, class)
	}
	if class.Home != nil {
		e.preferHome(pod, own, namespace, class)
	}
	for _, term := range class.PreferredNodeTerms {
		prefer(pod, term)
	}
	if class.Name == "placeholder" {
		e.attract(pod)
	}
	addPodTerms(pod, class)
	defaultRequests(pod, class.Requests)
	return class.Name, degraded
}

func (e *Engine) classOf(pod *corev1.Pod, namespace string) *policy.Class {
	if namespace != e.document.Namespace {
		return nil // every class is of the hub's own namespace
	}
	for i := range e.classes {
		class := &e.classes[i]
		if !hasLabels(pod.Labels, class.Match.Labels) {
			continue
		}
		return class
	}
	return nil
}

func hasLabels(have, want map[string]string) bool {
	for key, value := range want {
		if found, ok := have[key]; !ok || found != value {
			return false
		}
	}
	return true
}

// Pods that are bound already, those that asked, and Roost's own programs.
func leftAlone(pod *corev1.Pod) bool {
	if pod.Spec.NodeName != "" || pod.Annotations[policy.OptOutAnnotation] == "true" {
		return true
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	return pod.Labels["app.kubernetes.io/part-of"] == "roost" && pod.Labels["app.kubernetes.io/component"] != "placeholder"
}

// Owned by a DaemonSet; a hub may bind a user to a node by the same term.
func isDaemon(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

func annotate(pod *corev1.Pod, key, value string) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[key] = value
}

func (e *Engine) setScheduler(pod *corev1.Pod, class *policy.Class) {
	name := pod.Spec.SchedulerName
	if name != "" && name != corev1.DefaultSchedulerName {
		return
	}
	pod.Spec.SchedulerName = class.SchedulerName
	if class.StrictSchedulerName != "" && hasOwnTerms(pod, class) {
		pod.Spec.SchedulerName = class.StrictSchedulerName
	}
}

// The author's terms about pods or spreading; BinderHub's own spreading term gives way to a home.
func hasOwnTerms(pod *corev1.Pod, class *policy.Class) bool {
	if len(pod.Spec.TopologySpreadConstraints) > 0 {
		return true
	}
	var terms []corev1.WeightedPodAffinityTerm
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.PodAffinity != nil {
		terms = append(terms, affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.PodAntiAffinity != nil {
		terms = append(terms, affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	return slices.ContainsFunc(terms, func(term corev1.WeightedPodAffinityTerm) bool {
		return class.Home == nil || !isBinderHubSpread(term)
	})
}

// defaultRequests gives requests to each container of a pod that requests nothing at all.
func defaultRequests(pod *corev1.Pod, requests corev1.ResourceList) {
	if len(requests) == 0 || pod.Spec.Resources != nil {
		return
	}
	if slices.ContainsFunc(pod.Spec.Containers, func(one corev1.Container) bool { return len(one.Resources.Requests) > 0 }) {
		return
	}
	for i := range pod.Spec.Containers {
		resources := &pod.Spec.Containers[i].Resources
		for name, amount := range requests {
			if _, limited := resources.Limits[name]; limited {
				continue // requested at its limit, by Kubernetes' own default
			}
			if resources.Requests == nil {
				resources.Requests = corev1.ResourceList{}
			}
			resources.Requests[name] = amount
		}
	}
}

// preferHome prefers the first nodes of the repository's ring, with falling weights, and skips busy ones.
func (e *Engine) preferHome(pod *corev1.Pod, own demands, namespace string, class *policy.Class) {
	home := class.Home
	repository := homeKey(pod, home)
	if repository == "" || hasHome(pod) {
		return
	}
	ring, generation, withoutBuilders := e.facts.Ring(class.Name)
	order := e.rings[class.Name].order(repository, ring, generation)
	var candidates []string
	for _, name := range order {
		if len(candidates) == len(home.Weights) {
			break
		}
		if node := e.facts.Node(name); node == nil || own.admit(node) {
			candidates = append(candidates, name)
		}
	}
	if len(candidates) == 0 || (withoutBuilders && slices.ContainsFunc(preferredTerms(pod), isBinderHubSticky)) {
		dropBinderHubTerms(pod, false)
		return
	}
	dropBinderHubTerms(pod, true)
	for i, node := range candidates {
		prefer(pod, corev1.PreferredSchedulingTerm{Weight: home.Weights[i], Preference: onNode(node)})
	}
	annotate(pod, policy.TargetAnnotation, candidates[0])
}

// A pod that is reviewed again keeps its home.
func hasHome(pod *corev1.Pod) bool {
	target := pod.Annotations[policy.TargetAnnotation]
	if target == "" {
		return false
	}
	there := onNode(target)
	return slices.ContainsFunc(preferredTerms(pod), func(term corev1.PreferredSchedulingTerm) bool {
		return sameTerm(term.Preference, there)
	})
}

func onNode(node string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
	}}
}

func homeKey(pod *corev1.Pod, home *policy.Home) string {
	for _, source := range home.Key {
		if value := pod.Annotations[source.Annotation]; value != "" {
			return value
		}
	}
	return ""
}

// The author's terms stay, with one exception: those that BinderHub itself writes.
func dropBinderHubTerms(pod *corev1.Pod, sticky bool) {
	affinity := pod.Spec.Affinity
	if affinity == nil {
		return
	}
	if node := affinity.NodeAffinity; node != nil && sticky {
		node.PreferredDuringSchedulingIgnoredDuringExecution =
			slices.DeleteFunc(node.PreferredDuringSchedulingIgnoredDuringExecution, isBinderHubSticky)
	}
	if away := affinity.PodAntiAffinity; away != nil {
		away.PreferredDuringSchedulingIgnoredDuringExecution = slices.DeleteFunc(
			away.PreferredDuringSchedulingIgnoredDuringExecution, isBinderHubSpread)
	}
}

func isBinderHubSticky(term corev1.PreferredSchedulingTerm) bool {
	expressions := term.Preference.MatchExpressions
	return term.Weight == 100 && len(term.Preference.MatchFields) == 0 && len(expressions) == 1 &&
		expressions[0].Key == corev1.LabelHostname && expressions[0].Operator == corev1.NodeSelectorOpIn &&
		len(expressions[0].Values) == 1
}

func isBinderHubSpread(term corev1.WeightedPodAffinityTerm) bool {
	return term.Weight == 100 && equality.Semantic.DeepEqual(term.PodAffinityTerm, binderHubSpread)
}

var binderHubSpread = corev1.PodAffinityTerm{
	LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"component": "binderhub-build"}},
	TopologyKey:   corev1.LabelHostname,
}

// gate keeps the pod off nodes that are pulling its images while a node that could take it holds them, and prefers holders.
// It tells why it requires less than that; "" when it doesn't.
func (e *Engine) gate(pod *corev1.Pod, own demands, class *policy.Class) string {
	wanted := e.neededLabels(pod)
	for _, label := range wanted {
		prefer(pod, corev1.PreferredSchedulingTerm{
			Weight:     100,
			Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{holds(label)}},
		})
	}
	var missing []string
	for _, label := range wanted {
		if !isRequired(pod, isNotPulling(label)) {
			missing = append(missing, label)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	required, degraded := e.satisfiable(pod, own, class, missing)
	var expressions []corev1.NodeSelectorRequirement
	for _, label := range required {
		expressions = append(expressions, isNotPulling(label))
	}
	require(pod, expressions)
	return degraded
}

// satisfiable gives the labels that one and the same node has which the pod may use and which is large enough for it.
func (e *Engine) satisfiable(pod *corev1.Pod, own demands, class *policy.Class, missing []string) (required []string, degraded string) {
	requests := requestsOf(pod, class)
	if e.someNodeHolds(own, missing, requests) {
		return missing, ""
	}
	for _, label := range missing {
		if attempt := append(slices.Clone(required), label); e.someNodeHolds(own, attempt, requests) {
			required = attempt
		}
	}
	if e.someNodeHolds(own, missing, nil) {
		return required, "no-holder-fits"
	}
	return required, "no-holder"
}

func holds(label string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{"true"}}
}

// Nodes without the label pass, as those do that an autoscaler thinks up.
func isNotPulling(label string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: label, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"pulling"}}
}

// requestsOf gives what the pod will ask for, with what its class gives to pods that ask for nothing.
func requestsOf(pod *corev1.Pod, class *policy.Class) corev1.ResourceList {
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
	if len(requests) > 0 {
		return requests
	}
	for name, amount := range class.Requests {
		amount = amount.DeepCopy()
		amount.Mul(int64(len(pod.Spec.Containers)))
		requests[name] = amount
	}
	return requests
}

func isRequired(pod *corev1.Pod, expression corev1.NodeSelectorRequirement) bool {
	found := false
	for _, term := range requiredTerms(pod) {
		if isEmpty(term) {
			continue
		}
		found = true
		if !hasExpression(term, expression) {
			return false
		}
	}
	return found
}

func (e *Engine) neededLabels(pod *corev1.Pod) []string {
	var needed []string
	add := func(image string) {
		if image == "" {
			return
		}
		if label, ok := e.document.Pulled[policy.NormaliseReference(image)]; ok && !slices.Contains(needed, label) {
			needed = append(needed, label)
		}
	}
	for i := range pod.Spec.Containers {
		add(pod.Spec.Containers[i].Image)
	}
	for i := range pod.Spec.InitContainers {
		add(pod.Spec.InitContainers[i].Image)
	}
	return needed
}

// Judged over the nodes that the pod's own rules admit: others can't help it.
func (e *Engine) someNodeHolds(own demands, needed []string, requests corev1.ResourceList) bool {
	for _, node := range e.facts.Holders(needed[0]) {
		lacks := slices.ContainsFunc(needed, func(label string) bool { return node.Labels[label] != "true" })
		if !lacks && facts.IsReady(node) && own.admit(node) && covers(node.Status.Allocatable, requests) {
			return true
		}
	}
	return false
}

// If nothing else were there. A node that says nothing of its room could.
func covers(allocatable, requests corev1.ResourceList) bool {
	if len(allocatable) == 0 {
		return true
	}
	for name, amount := range requests {
		if there := allocatable[name]; amount.Sign() > 0 && there.Cmp(amount) < 0 {
			return false
		}
	}
	return true
}

// demands are what a pod asks of its node.
type demands struct {
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
}

func demandsOf(pod *corev1.Pod) demands {
	return demands{affinity: nodeaffinity.GetRequiredNodeAffinity(pod), tolerations: pod.Spec.Tolerations}
}

var cordon = corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}

func (d demands) admit(node *corev1.Node) bool {
	if node.Spec.Unschedulable && !corev1helpers.TolerationsTolerateTaint(logr.Discard(), d.tolerations, &cordon, false) {
		return false
	}
	_, keptOff := corev1helpers.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, d.tolerations,
		func(taint *corev1.Taint) bool { return taint.Effect != corev1.TaintEffectPreferNoSchedule }, false)
	if keptOff {
		return false
	}
	fits, err := d.affinity.Match(node)
	return err == nil && fits
}

func requiredTerms(pod *corev1.Pod) []corev1.NodeSelectorTerm {
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.NodeAffinity != nil {
		if required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			return required.NodeSelectorTerms
		}
	}
	return nil
}

func preferredTerms(pod *corev1.Pod) []corev1.PreferredSchedulingTerm {
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.NodeAffinity != nil {
		return affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// require adds the expressions to every term, since terms are ORed; an empty term matches nothing and stays so.
func require(pod *corev1.Pod, expressions []corev1.NodeSelectorRequirement) {
	if len(expressions) == 0 {
		return
	}
	affinity := nodeAffinity(pod)
	if affinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: expressions}},
		}
		return
	}
	terms := affinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		if isEmpty(terms[i]) {
			continue
		}
		for _, expression := range expressions {
			if !hasExpression(terms[i], expression) {
				terms[i].MatchExpressions = append(terms[i].MatchExpressions, expression)
			}
		}
	}
}

func isEmpty(term corev1.NodeSelectorTerm) bool {
	return len(term.MatchExpressions) == 0 && len(term.MatchFields) == 0
}

func hasExpression(term corev1.NodeSelectorTerm, expression corev1.NodeSelectorRequirement) bool {
	return slices.ContainsFunc(term.MatchExpressions, func(one corev1.NodeSelectorRequirement) bool {
		return sameExpression(one, expression)
	})
}

func (e *Engine) attract(pod *corev1.Pod) {
	set := pod.Labels[policy.SetLabel]
	if set == "" && len(e.document.Placeholders) > 0 {
		set = e.document.Placeholders[0].Name
	}
	if set == "" {
		return
	}
	prefer(pod, corev1.PreferredSchedulingTerm{
		Weight: 100,
		Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: e.document.AttractLabel(set), Operator: corev1.NodeSelectorOpExists},
		}},
	})
}

func nodeAffinity(pod *corev1.Pod) *corev1.NodeAffinity {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if pod.Spec.Affinity.NodeAffinity == nil {
		pod.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	return pod.Spec.Affinity.NodeAffinity
}

// prefer adds a term unless one with an equal preference is there, whatever its weight.
func prefer(pod *corev1.Pod, term corev1.PreferredSchedulingTerm) {
	if slices.ContainsFunc(preferredTerms(pod), func(one corev1.PreferredSchedulingTerm) bool {
		return sameTerm(one.Preference, term.Preference)
	}) {
		return
	}
	affinity := nodeAffinity(pod)
	affinity.PreferredDuringSchedulingIgnoredDuringExecution =
		append(affinity.PreferredDuringSchedulingIgnoredDuringExecution, term)
}

func sameTerm(a, b corev1.NodeSelectorTerm) bool {
	return slices.EqualFunc(a.MatchExpressions, b.MatchExpressions, sameExpression) &&
		slices.EqualFunc(a.MatchFields, b.MatchFields, sameExpression)
}

func sameExpression(a, b corev1.NodeSelectorRequirement) bool {
	return a.Key == b.Key && a.Operator == b.Operator && slices.Equal(a.Values, b.Values)
}

func addPodTerms(pod *corev1.Pod, class *policy.Class) {
	if len(class.Neighbours) == 0 && len(class.Strangers) == 0 {
		return
	}
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	if len(class.Neighbours) > 0 {
		if pod.Spec.Affinity.PodAffinity == nil {
			pod.Spec.Affinity.PodAffinity = &corev1.PodAffinity{}
		}
		list := &pod.Spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*list = withPodTerms(*list, class.Neighbours)
	}
	if len(class.Strangers) > 0 {
		if pod.Spec.Affinity.PodAntiAffinity == nil {
			pod.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		list := &pod.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*list = withPodTerms(*list, class.Strangers)
	}
}

func withPodTerms(present, wanted []corev1.WeightedPodAffinityTerm) []corev1.WeightedPodAffinityTerm {
	for _, term := range wanted {
		if !slices.ContainsFunc(present, func(one corev1.WeightedPodAffinityTerm) bool {
			return equality.Semantic.DeepEqual(one.PodAffinityTerm, term.PodAffinityTerm)
		}) {
			present = append(present, term)
		}
	}
	return present
}
